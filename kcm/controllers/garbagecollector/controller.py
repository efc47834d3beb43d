"""The garbage collector: deletes objects whose owners are gone.

A key names one incarnation of an owner that is gone or being deleted. One sync handles up to BURST
of its dependents with one plan. `collect` decides what happens to each.

Source: pkg/controller/garbagecollector, Kubernetes 1.33. Departures: upstream queues the dependents
one by one. Here several managers may each dispatch some kinds, so a change may be evaluated with
caches that lag behind; a pass over all objects once a minute makes up for that, which upstream
never does.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from pydantic import Field

from kcm.apimachinery.meta_v1 import KubeObject
from kcm.controllers.garbagecollector.collect import (
    attempt_to_delete,
    finish_foreground_deletion,
    finish_orphaning,
    invalid_namespaces,
)
from kcm.controllers.garbagecollector.graph import (
    Graph,
    Item,
    OwnerState,
    blocks,
    deletes_dependents,
    orphans_dependents,
    references_of,
)
from kcm.helpers.owners import without_owners
from kcm.sdk import Change, Controller, Options, PassPlan, Patch, Plan, Tick, View, Watch, Write

BURST = 500  # the most dependents that one sync writes
SWEEP_PERIOD = 60.0  # seconds


class GarbageCollectorOptions(Options):
    """The options of the garbage collector."""

    concurrent_gc_syncs: int = Field(
        default=20,
        ge=1,
        description="The number of garbage collector workers that are allowed to sync concurrently",
    )


class GarbageCollector(Controller):
    """Deletes dependents without owners, of all kinds. A key is a `graph.Item`."""

    name = "garbage-collector-controller"
    short_name = "garbagecollector"
    group = "gc"
    options_type = GarbageCollectorOptions
    options: GarbageCollectorOptions
    metadata_only = True

    def watches(self) -> tuple[Watch[Any], ...]:
        return (Watch(None, item_keys),)

    def ticks(self) -> tuple[Tick, ...]:
        return (Tick("sweep", SWEEP_PERIOD, self.sweep),)

    def concurrent_syncs(self) -> int:
        return self.options.concurrent_gc_syncs

    def reconcile(self, key: str, view: View) -> Plan:
        item = Item.parse(key)
        graph = Graph(view, item)
        obj = graph.find(item)
        if obj is None:
            return _collect(graph, graph.dependents(item.uid))
        if orphans_dependents(obj):
            return _orphan(obj, graph)
        if deletes_dependents(obj):
            return _delete_dependents(obj, graph)
        return _collect(graph, [obj])

    def sweep(self, view: View, state: Mapping[str, str]) -> PassPlan:
        """Returns a plan for objects that no watch event has enqueued: one pass over all
        objects.
        """
        graph = Graph(view)
        items = {key: None for obj in graph.objects() for key in _keys_of(obj, graph)}
        plan = PassPlan(waits=())
        for key in items:
            if len(plan.writes) >= BURST:
                break
            plan.steps += self.reconcile(key, view).steps
        return plan


# --- which keys a change touches


def item_keys(change: Change, view: View) -> Iterable[str]:
    """Yields the keys of the owners whose dependents must be checked after a change of any
    object.
    """
    graph = Graph(view)
    old, new = change.old, change.new
    replaced = old is not None and new is not None and old.uid != new.uid
    if old is not None and (new is None or replaced):
        yield from _after_deletion(old, graph)
    if new is not None:
        yield from _after_change(None if replaced else old, new, graph)


def _after_deletion(old: KubeObject, graph: Graph) -> Iterator[str]:
    if graph.dependents(old.uid):
        yield str(Item.of(old))
    for reference in references_of(old):
        yield from _find_waiting_owner(reference.uid, graph)


def _after_change(old: KubeObject | None, new: KubeObject, graph: Graph) -> Iterator[str]:
    if old is not None and _is_unaffected(old, new):
        return
    yield from _keys_of(new, graph)
    if old is None:
        yield from _outside_dependents(new, graph)
        return
    for reference in references_of(old):
        if reference.block_owner_deletion and not blocks(new, reference.uid):
            yield from _find_waiting_owner(reference.uid, graph)


def _is_unaffected(old: KubeObject, new: KubeObject) -> bool:
    """Reports whether the change does not concern owner references. A resync is not such a
    change.
    """
    before, after = old.metadata, new.metadata
    return (
        before.resource_version != after.resource_version
        and before.deletion_timestamp == after.deletion_timestamp
        and before.finalizers == after.finalizers
        and before.owner_references == after.owner_references
    )


def _keys_of(obj: KubeObject, graph: Graph) -> Iterator[str]:
    """Yields the keys to sync for an object: itself, or owners that are gone or being deleted."""
    if deletes_dependents(obj) or orphans_dependents(obj):
        yield str(Item.of(obj))
    if obj.deleting:
        return
    for reference in references_of(obj):
        state = graph.owner_state(reference, obj)
        if state in (OwnerState.ABSENT, OwnerState.WAITING):
            yield str(graph.owner_item(reference, obj))
        elif state is OwnerState.OUT_OF_SCOPE:
            yield str(Item.of(obj))
        elif state is OwnerState.UNKNOWN and graph.is_elsewhere(reference, obj):
            yield str(Item.of(obj))  # only to record it


def _outside_dependents(owner: KubeObject, graph: Graph) -> Iterator[str]:
    """Yields objects outside an owner's namespace that named it before it was created."""
    for dependent in graph.dependents(owner.uid) if owner.namespace else ():
        if dependent.namespace != owner.namespace and not dependent.deleting:
            yield str(Item.of(dependent))


def _find_waiting_owner(uid: str, graph: Graph) -> Iterator[str]:
    """Yields the owner if it waits for its dependents, even an owner in another namespace."""
    for owner in graph.bearers(uid):
        if deletes_dependents(owner):
            yield str(Item.of(owner))


# --- what to do for one item


def _collect(graph: Graph, objects: Sequence[KubeObject]) -> Plan:
    """Returns a plan that deletes those of the objects that have no owners left.

    If the plan would get more than BURST writes, the key is requeued for the rest.
    """
    plan = Plan()
    writes: list[Write] = []
    for obj in objects:
        if len(writes) >= BURST:
            plan.requeue_after = 0.0
            break
        writes += attempt_to_delete(obj, graph)
        plan.events += invalid_namespaces(obj, graph)
    return plan.then(*writes)


def _delete_dependents(owner: KubeObject, graph: Graph) -> Plan:
    dependents = graph.dependents(owner.uid)
    return _collect(graph, dependents).then(*finish_foreground_deletion(owner, dependents))


def _orphan(owner: KubeObject, graph: Graph) -> Plan:
    dependents = graph.dependents(owner.uid)
    removal = without_owners(owner.uid)
    plan = Plan().then(*(Patch(obj, removal) for obj in dependents[:BURST]), essential=True)
    if len(dependents) > BURST:
        plan.requeue_after = 0.0
        return plan
    return plan.then(finish_orphaning(owner))
