"""What becomes of an object whose owners are gone or going.

Source: attemptToDeleteItem, processDeletingDependentsItem and orphanDependents in
pkg/controller/garbagecollector/garbagecollector.go, Kubernetes 1.33. Upstream
looks each owner up live before it deletes; here the write carries the condition
that the owner is absent, so an owner that is just coming back is not missed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from kcm.apimachinery.meta_v1 import KubeObject, OwnerReference
from kcm.controllers.garbagecollector.graph import (
    Graph,
    Standing,
    blocks,
    deletes_dependents,
    references_of,
)
from kcm.helpers.refs import without_owners
from kcm.reconcile.plan import Delete, Event, Patch, Write
from kcm.store import DeleteOptions, Guard
from kcm.store.rules import FOREGROUND_FINALIZER, ORPHAN_FINALIZER, PropagationPolicy


def attempt_to_delete(obj: KubeObject, graph: Graph) -> list[Write]:
    """Delete an object none of whose owners is left, or strip it of references to those gone.

    Nothing happens while an owner's kind is not known, nor to an object of the
    cluster that names an owner in a namespace.
    """
    if obj.deleting:
        return []
    by_standing: dict[Standing, list[OwnerReference]] = {}
    for reference in references_of(obj):
        by_standing.setdefault(graph.standing(reference, obj), []).append(reference)
    if Standing.UNKNOWN in by_standing or Standing.OUT_OF_SCOPE in by_standing:
        return []
    dangling = by_standing.get(Standing.ABSENT, [])
    waiting = by_standing.get(Standing.WAITING, [])
    if not dangling and not waiting:
        return []
    guards = tuple(_absences(dangling, obj, graph))
    if Standing.SOLID in by_standing:
        # References to waiting owners go, too: they would wait for this object forever.
        uids = (reference.uid for reference in (*dangling, *waiting))
        return [Patch(obj, without_owners(*uids), guards)]
    dependents = graph.dependents(obj.uid) if waiting else []
    if not dependents:
        return [_delete(obj, _policy_of(obj), guards)]
    if any(deletes_dependents(dependent) for dependent in dependents):
        # Perhaps a circle of owners that wait for each other; break it.
        return [Patch(obj, _unblocked), Delete(obj, DeleteOptions(None, "Foreground", obj.uid))]
    return [_delete(obj, "Foreground", guards)]


def finish_foreground_deletion(owner: KubeObject, dependents: list[KubeObject]) -> list[Write]:
    """Let go of an owner that waits for its dependents, once none blocks it any more.

    One in another namespace cannot belong to it, whatever it says, so it blocks nobody; with
    upstream it does.
    """
    own = (d for d in dependents if owner.namespace in ("", d.namespace))
    if any(blocks(dependent, owner.uid) for dependent in own):
        return []
    # A dependent that comes in this very moment must still be waited for. Those
    # that do not block make the index useless as a condition.
    guards = () if dependents else (_without_dependents(owner),)
    return [Patch(owner, without_finalizer(FOREGROUND_FINALIZER), guards)]


def finish_orphaning(owner: KubeObject) -> Write:
    """Let go of an owner once no dependent refers to it any more."""
    return Patch(owner, without_finalizer(ORPHAN_FINALIZER), (_without_dependents(owner),))


def invalid_namespaces(obj: KubeObject, graph: Graph) -> Iterator[Event]:
    """A warning for each reference to an owner that exists, but in another namespace."""
    for reference in references_of(obj):
        if graph.standing(reference, obj) in (Standing.SOLID, Standing.WAITING):
            continue
        if graph.is_elsewhere(reference, obj):
            named = (
                f"[{reference.api_version}/{reference.kind}, namespace: {obj.namespace}, "
                f"name: {reference.name}, uid: {reference.uid}]"
            )
            message = f'ownerRef {named} does not exist in namespace "{obj.namespace}"'
            yield Event(obj, "Warning", "OwnerRefInvalidNamespace", message)


def without_finalizer(name: str) -> Callable[[KubeObject], KubeObject]:
    """A change that removes a finalizer."""
    return partial(_without_finalizer, name)


def _without_finalizer(name: str, obj: KubeObject) -> KubeObject:
    finalizers = obj.metadata.finalizers or []
    if name not in finalizers:
        return obj
    return obj.with_metadata(finalizers=[f for f in finalizers if f != name] or None)


def _unblocked(obj: KubeObject) -> KubeObject:
    if not any(reference.block_owner_deletion for reference in references_of(obj)):
        return obj
    references = [ref.replace(block_owner_deletion=False) for ref in references_of(obj)]
    return obj.with_metadata(owner_references=references)


def _absences(references: list[OwnerReference], obj: KubeObject, graph: Graph) -> Iterator[Guard]:
    for reference in references:
        item = graph.owner_item(reference, obj)
        assert item is not None
        yield item.absent()


def _without_dependents(owner: KubeObject) -> Guard:
    return Guard.unindexed(f"owner:{owner.uid}")


def _delete(obj: KubeObject, policy: PropagationPolicy, guards: tuple[Guard, ...]) -> Delete:
    # The version, too: a reference to a further owner may just have been added.
    version = obj.metadata.resource_version or ""
    return Delete(obj, DeleteOptions(None, policy, obj.uid, version), guards)


def _policy_of(obj: KubeObject) -> PropagationPolicy:
    """What the finalizers that an object already has ask for."""
    finalizers = obj.metadata.finalizers or ()
    if ORPHAN_FINALIZER in finalizers:
        return "Orphan"
    return "Foreground" if FOREGROUND_FINALIZER in finalizers else "Background"
