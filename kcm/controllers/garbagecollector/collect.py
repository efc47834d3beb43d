"""Plans what happens to an object whose owners are gone or being deleted.

Source: attemptToDeleteItem, processDeletingDependentsItem and orphanDependents in
pkg/controller/garbagecollector/garbagecollector.go, Kubernetes 1.33. Upstream gets each owner from
the API server before it deletes a dependent. Here the write has a guard that the owner is absent,
so an owner that is created in that moment keeps its dependents.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from kcm.apimachinery.meta_v1 import KubeObject, OwnerReference
from kcm.controllers.garbagecollector.graph import (
    Graph,
    OwnerState,
    blocks,
    deletes_dependents,
    references_of,
)
from kcm.helpers.owners import without_owners
from kcm.sdk import (
    FOREGROUND_FINALIZER,
    ORPHAN_FINALIZER,
    Delete,
    DeleteOptions,
    Event,
    Guard,
    Patch,
    PropagationPolicy,
    Unindexed,
    Write,
)


def attempt_to_delete(obj: KubeObject, graph: Graph) -> list[Write]:
    """Returns writes that delete an object without owners, or remove its references to gone owners.

    Returns none while the kind of an owner is unknown, nor for a cluster-scoped object that names
    an owner in a namespace.
    """
    if obj.deleting:
        return []
    by_state: dict[OwnerState, list[OwnerReference]] = {}
    for reference in references_of(obj):
        by_state.setdefault(graph.owner_state(reference, obj), []).append(reference)
    if OwnerState.UNKNOWN in by_state or OwnerState.OUT_OF_SCOPE in by_state:
        return []
    dangling = by_state.get(OwnerState.ABSENT, [])
    waiting = by_state.get(OwnerState.WAITING, [])
    if not dangling and not waiting:
        return []
    guards = tuple(_absence_guards(dangling, obj, graph))
    if OwnerState.SOLID in by_state:
        # References to waiting owners are removed too: these owners would wait forever.
        uids = (reference.uid for reference in (*dangling, *waiting))
        return [Patch(obj, without_owners(*uids), guards)]
    dependents = graph.dependents(obj.uid) if waiting else []
    if not dependents:
        return [_delete(obj, _policy_of(obj), guards)]
    if any(deletes_dependents(dependent) for dependent in dependents):
        # Owners may wait for each other in a circle, which this breaks.
        return [
            Patch(obj, _unblock_owners),
            Delete(obj, DeleteOptions(None, "Foreground", obj.uid)),
        ]
    return [_delete(obj, "Foreground", guards)]


def finish_foreground_deletion(owner: KubeObject, dependents: list[KubeObject]) -> list[Write]:
    """Returns the write that removes the foreground finalizer, unless a dependent blocks it.

    An object in another namespace cannot be a dependent, whatever its references say, so it does
    not block the deletion. Upstream lets it block.
    """
    own = (d for d in dependents if owner.namespace in ("", d.namespace))
    if any(blocks(dependent, owner.uid) for dependent in own):
        return []
    # The guard fails if a dependent is created in this moment. With dependents that do not block,
    # the index cannot be used as a guard.
    guards = () if dependents else (_without_dependents(owner),)
    return [Patch(owner, without_finalizer(FOREGROUND_FINALIZER), guards)]


def finish_orphaning(owner: KubeObject) -> Write:
    """Returns the write that removes the orphan finalizer once no dependent refers to the owner."""
    return Patch(owner, without_finalizer(ORPHAN_FINALIZER), (_without_dependents(owner),))


def invalid_namespaces(obj: KubeObject, graph: Graph) -> Iterator[Event]:
    """Yields a warning Event for each reference to an owner that exists only in another
    namespace.
    """
    for reference in references_of(obj):
        if graph.owner_state(reference, obj) in (OwnerState.SOLID, OwnerState.WAITING):
            continue
        if graph.is_elsewhere(reference, obj):
            named = (
                f"[{reference.api_version}/{reference.kind}, namespace: {obj.namespace}, "
                f"name: {reference.name}, uid: {reference.uid}]"
            )
            message = f'ownerRef {named} does not exist in namespace "{obj.namespace}"'
            yield Event(obj, "Warning", "OwnerRefInvalidNamespace", message)


def without_finalizer(name: str) -> Callable[[KubeObject], KubeObject]:
    """Returns a function that removes a finalizer from an object."""
    return partial(_without_finalizer, name)


def _without_finalizer(name: str, obj: KubeObject) -> KubeObject:
    finalizers = obj.metadata.finalizers or []
    if name not in finalizers:
        return obj
    return obj.with_metadata(finalizers=[f for f in finalizers if f != name] or None)


def _unblock_owners(obj: KubeObject) -> KubeObject:
    if not any(reference.block_owner_deletion for reference in references_of(obj)):
        return obj
    references = [ref.replace(block_owner_deletion=False) for ref in references_of(obj)]
    return obj.with_metadata(owner_references=references)


def _absence_guards(
    references: list[OwnerReference], obj: KubeObject, graph: Graph
) -> Iterator[Guard]:
    for reference in references:
        item = graph.owner_item(reference, obj)
        assert item is not None
        yield item.absent()


def _without_dependents(owner: KubeObject) -> Guard:
    return Unindexed(f"owner:{owner.uid}")


def _delete(obj: KubeObject, policy: PropagationPolicy, guards: tuple[Guard, ...]) -> Delete:
    # The version is a precondition as well: a reference to another owner may just have been added.
    version = obj.metadata.resource_version or ""
    return Delete(obj, DeleteOptions(None, policy, obj.uid, version), guards)


def _policy_of(obj: KubeObject) -> PropagationPolicy:
    """Returns the propagation policy that the finalizers of an object ask for."""
    finalizers = obj.metadata.finalizers or ()
    if ORPHAN_FINALIZER in finalizers:
        return "Orphan"
    return "Foreground" if FOREGROUND_FINALIZER in finalizers else "Background"
