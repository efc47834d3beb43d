"""Working off the zones' queues, no faster than their token buckets allow.

The token is taken by a guard of the write that it pays for, in the same step: whichever
worker runs the pass, and wherever it dies, a node costs one token and is neither skipped
nor dealt with twice.

Source: doNoExecuteTaintingPass in pkg/controller/nodelifecycle/node_lifecycle_controller.go,
Kubernetes 1.33; doEvictionPass as it was up to 1.26.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial

from kcm.api.core_v1 import Node, Pod
from kcm.controllers.nodelifecycle import pods, taints
from kcm.controllers.nodelifecycle.memory import load_zones
from kcm.controllers.nodelifecycle.monitor import EVICTION_PERIOD, bucket
from kcm.controllers.nodelifecycle.zones import Zone, shown, zone_key
from kcm.reconcile.contract import BY_NODE, PassView
from kcm.reconcile.counters import Counter, sum_counts
from kcm.reconcile.plan import Batch, Delete, Event, Outcome, Patch, Plan, Write
from kcm.store import Guard

EVICTIONS = Counter(
    "node_collector_evictions", "Number of nodes that were given up, by zone", ("zone",)
)


def taint_nodes(view: PassView, state: Mapping[str, str]) -> Plan:
    """NoExecute taints for the nodes that wait longest."""
    plan = Plan()
    for zone, nodes in _waiting(view, state, _lacks_taint):
        paid = (Guard.token(bucket(zone)),)
        change = partial(taints.tainted, view.now)
        # In steps: the first refusal ends the zone's turn.
        plan.then(*(Patch(node, change, paid) for node in nodes), slow_start=True)
    plan.counts_after = _tainted
    return plan


def evict_pods(view: PassView, state: Mapping[str, str]) -> Plan:
    """Direct eviction: the pods of the nodes that wait longest are deleted."""
    plan = Plan()
    emptied: dict[str, Node] = {}
    for zone, nodes in _waiting(view, state, _is_not_ready):
        for node in nodes:
            emptied[node.name] = node
            writes = _emptying(node, zone, view.lister(Pod).by_index(BY_NODE, node.name))
            plan.batches.append(Batch(writes, slow_start=True))
    plan.events_after = partial(_deletions, emptied)
    plan.counts_after = partial(_emptied, emptied)
    return plan


def _waiting(
    view: PassView, state: Mapping[str, str], is_due: Callable[[Node], bool]
) -> Iterator[tuple[str, list[Node]]]:
    """The zones with work, and so many nodes of each as a full bucket could pay for."""
    lister = view.lister(Node)
    for key, zone in load_zones(state).items():
        if zone.rate > 0:
            found = (lister.find(name) for name in zone.queue)
            nodes = [node for node in found if node is not None and zone_key(node) == key]
            waiting = [node for node in nodes if is_due(node)]
            if waiting:
                yield key, waiting[: _most(zone)]


def _is_not_ready(node: Node) -> bool:
    """Not one that came back since the queue was filled."""
    ready = taints.ready_condition(node)
    return ready is not None and ready.status in ("False", "Unknown")


def _lacks_taint(node: Node) -> bool:
    """Nor one that an earlier pass dealt with."""
    ready = taints.ready_condition(node)
    if ready is None or ready.status not in ("False", "Unknown"):
        return False
    return not taints.has_taint(node, taints.wanted_and_opposite(ready.status)[0])


def _most(zone: Zone) -> int:
    return int(max(1.0, zone.rate * EVICTION_PERIOD)) + 1


def _emptying(node: Node, zone: str, found: Sequence[Pod]) -> list[Write]:
    """The first pod's mark takes the node's token. Where a pod bears the mark already, the node
    was paid for, by a pass that died or before another pod came."""
    paid = any(pod.status.reason == pods.NODE_LOST for pod in found)
    writes: list[Write] = []
    for pod in found:
        if pods.evictable(pod):
            guards = () if paid else (Guard.token(bucket(zone)),)
            paid = True
            writes.append(Patch(pod, partial(pods.lost, node.name), guards, status=True))
            writes.append(Delete(pod))
    return writes


def _deletions(nodes: Mapping[str, Node], outcome: Outcome) -> list[Event]:
    about_nodes: dict[str, Event] = {}
    about_pods: list[Event] = []
    for write, _ in outcome.done:
        if isinstance(write, Delete) and isinstance(write.old, Pod):
            pod, name = write.old, write.old.spec.node_name or ""
            message = f"Node {name} event: Deleting all Pods from Node {name}."
            about_nodes[name] = Event(nodes[name], "Normal", "DeletingAllPods", message)
            message = f"Marking for deletion Pod {pod.name} from Node {name}"
            about_pods.append(Event(pod, "Normal", "NodeControllerEviction", message))
    return [*about_nodes.values(), *about_pods]


def _tainted(outcome: Outcome) -> dict[str, int]:
    """One eviction for each node that has its taint now; not for one that came back meanwhile."""
    nodes = (obj for _, obj in outcome.done if isinstance(obj, Node))
    return _evictions(node for node in nodes if _is_not_ready(node) and not _lacks_taint(node))


def _emptied(nodes: Mapping[str, Node], outcome: Outcome) -> dict[str, int]:
    """One eviction for each token: those are taken with a node's first pod."""
    paid = (w.old for w, _ in outcome.done if isinstance(w, Patch) and w.guards)
    return _evictions(nodes[pod.spec.node_name or ""] for pod in paid if isinstance(pod, Pod))


def _evictions(nodes: Iterable[Node]) -> dict[str, int]:
    return sum_counts(EVICTIONS.count(shown(zone_key(node))) for node in nodes)
