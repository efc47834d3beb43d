"""Processes the queues of the zones, no faster than their token buckets allow.

A guard takes the token in the same step as the write that it pays for. So a node costs exactly one
token and is neither skipped nor handled twice, even if a worker dies in its pass.

Source: doNoExecuteTaintingPass in pkg/controller/nodelifecycle/node_lifecycle_controller.go,
Kubernetes 1.33; doEvictionPass as it was up to 1.26.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial

from kcm.api.core_v1 import Node, Pod
from kcm.controllers.nodelifecycle import pods, taints
from kcm.controllers.nodelifecycle.memory import load_zones
from kcm.controllers.nodelifecycle.monitor import EVICTION_PERIOD, bucket_of
from kcm.controllers.nodelifecycle.zones import Zone, format_zone, zone_key
from kcm.sdk import (
    BY_NODE,
    Counter,
    Delete,
    Event,
    Outcome,
    PassPlan,
    PassView,
    Patch,
    TokenAvailable,
    Write,
    sum_counts,
)

EVICTIONS = Counter(
    "node_collector_evictions", "Number of node evictions that happened, by zone", ("zone",)
)


def taint_nodes(view: PassView, state: Mapping[str, str]) -> PassPlan:
    """Returns a plan that adds a NoExecute taint to the nodes that have waited longest.

    Each taint takes a token from its zone's bucket. An empty bucket ends the zone's turn.
    """
    plan = PassPlan()
    for zone, nodes in _list_waiting_nodes(view, state, _lacks_taint):
        paid = (TokenAvailable(bucket_of(zone)),)
        change = partial(taints.add_no_execute, view.now)
        # Slow start sends few at first, so that an empty bucket refuses few writes.
        plan.then(*(Patch(node, change, paid) for node in nodes), slow_start=True)
    plan.counts_after = _count_tainted
    return plan


def evict_pods(view: PassView, state: Mapping[str, str]) -> PassPlan:
    """Returns a plan that deletes the pods of the nodes that have waited longest (direct
    eviction).
    """
    plan = PassPlan()
    emptied: dict[str, Node] = {}
    for zone, nodes in _list_waiting_nodes(view, state, _is_not_ready):
        for node in nodes:
            emptied[node.name] = node
            writes = _eviction_writes(node, zone, view.lister(Pod).by_index(BY_NODE, node.name))
            plan.then(*writes, slow_start=True)
    plan.events_after = partial(_deletions, emptied)
    plan.counts_after = partial(_count_emptied, emptied)
    return plan


def _list_waiting_nodes(
    view: PassView, state: Mapping[str, str], is_due: Callable[[Node], bool]
) -> Iterator[tuple[str, list[Node]]]:
    """Yields each zone with due nodes, and as many of them as a full bucket has tokens for."""
    lister = view.lister(Node)
    for key, zone in load_zones(state).items():
        if zone.rate > 0:
            queued = (lister.find(name) for name in zone.queue)
            nodes = [node for node in queued if node is not None and zone_key(node) == key]
            waiting = [node for node in nodes if is_due(node)]
            if waiting:
                yield key, waiting[: _most(zone)]


def _is_not_ready(node: Node) -> bool:
    """Reports whether the node is still not ready. It may have become ready since it was queued."""
    ready = taints.ready_condition(node)
    return ready is not None and ready.status in ("False", "Unknown")


def _lacks_taint(node: Node) -> bool:
    """Reports whether the node is not ready and lacks its taint, which an earlier pass may have
    added.
    """
    ready = taints.ready_condition(node)
    if ready is None or ready.status not in ("False", "Unknown"):
        return False
    return not taints.has_taint(node, taints.taint_and_opposite(ready.status)[0])


def _most(zone: Zone) -> int:
    return int(max(1.0, zone.rate * EVICTION_PERIOD)) + 1


def _eviction_writes(node: Node, zone: str, all_pods: Sequence[Pod]) -> list[Write]:
    """Returns the writes that delete a node's pods.

    The patch of the first pod's status takes the node's token. If a pod has that status already,
    the token was taken by a pass that died, or before another pod was bound to the node.
    """
    paid = any(pod.status.reason == pods.NODE_LOST for pod in all_pods)
    writes: list[Write] = []
    for pod in all_pods:
        if pods.is_evictable(pod):
            guards = () if paid else (TokenAvailable(bucket_of(zone)),)
            paid = True
            writes.append(Patch(pod, partial(pods.mark_lost, node.name), guards, status=True))
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


def _count_tainted(outcome: Outcome) -> dict[str, int]:
    """Returns one eviction for each node that has its taint now, and none for a node that became
    ready.
    """
    nodes = (obj for _, obj in outcome.done if isinstance(obj, Node))
    return _count_evictions(
        node for node in nodes if _is_not_ready(node) and not _lacks_taint(node)
    )


def _count_emptied(nodes: Mapping[str, Node], outcome: Outcome) -> dict[str, int]:
    """Returns one eviction for each token, which the patch of a node's first pod takes."""
    paid = (w.old for w, _ in outcome.done if isinstance(w, Patch) and w.guards)
    return _count_evictions(nodes[pod.spec.node_name or ""] for pod in paid if isinstance(pod, Pod))


def _count_evictions(nodes: Iterable[Node]) -> dict[str, int]:
    return sum_counts(EVICTIONS.count(format_zone(zone_key(node))) for node in nodes)
