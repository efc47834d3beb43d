"""One pass over all nodes: finds new, deleted and unreachable ones, and computes the zones' states.

Source: monitorNodeHealth, processTaintBaseEviction, handleDisruption in
pkg/controller/nodelifecycle/node_lifecycle_controller.go, Kubernetes 1.33;
processNoTaintBaseEviction as it was up to 1.26.

Departures: a node is queued in the pass that finds it unreachable, not in the next one. Whether a
node has just become not ready is decided by the last completed pass, so that the next pass makes up
for one that died. While all zones are down, each pass removes taints, not only the first, since
another worker may just have added one.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial

from kcm.api.coordination_v1 import Lease
from kcm.api.core_v1 import Node, Pod
from kcm.apimachinery.meta_v1 import ObjectMeta
from kcm.controllers.nodelifecycle import pods, taints
from kcm.controllers.nodelifecycle.health import mark_unknown, observe
from kcm.controllers.nodelifecycle.memory import LifecycleMemory, NodeHealth
from kcm.controllers.nodelifecycle.zones import EXCLUDED, EvictionRates, Zone, judge_zones, zone_key
from kcm.helpers.pods import is_ready
from kcm.sdk import BY_NODE, Limit, PassPlan, PassView, Patch

NODE_LEASES = "kube-node-lease"  # the namespace


@dataclass(frozen=True)
class GracePeriods:
    """The grace periods of the controller's flags, in seconds."""

    running: float  # until a node that has reported is unreachable
    startup: float  # until a node that has never reported is unreachable
    eviction: float | None  # until direct eviction; None if nodes are tainted instead


@dataclass
class _PassResult:
    """The writes, counts and queued nodes of a pass."""

    plan: PassPlan = field(default_factory=PassPlan)
    nodes: list[Patch[Node]] = field(default_factory=list)
    pods: list[Patch[Pod]] = field(default_factory=list)
    # By zone, the numbers of nodes that are ready and that are not.
    counts: dict[str, tuple[int, int]] = field(default_factory=dict)
    queued: dict[str, list[str]] = field(default_factory=dict)  # keyed by zone

    def count(self, zone: str, node: Node, ready: bool) -> None:
        """Counts a node for its zone, unless it has the label that excludes it."""
        good, bad = self.counts.get(zone, (0, 0))
        if EXCLUDED not in node.labels:
            good, bad = (good + 1, bad) if ready else (good, bad + 1)
        self.counts[zone] = (good, bad)


class Monitor:
    """Runs one pass. It updates `memory` for the next one."""

    def __init__(
        self, view: PassView, memory: LifecycleMemory, grace: GracePeriods, rates: EvictionRates
    ) -> None:
        self._view = view
        self._memory = memory
        self._grace = grace
        self._rates = rates
        self._result = _PassResult()
        self._pods = view.lister(Pod)

    def _may_change(self, node: Node) -> bool:
        """Reports whether a later pass may find something about the node that did not change."""
        ready = taints.ready_condition(node)
        unreachable = ready is not None and ready.status == "Unknown"
        return not unreachable or self._grace.eviction is not None

    def run(self) -> PassPlan:
        nodes = self._view.lister(Node).list()
        leases = self._view.lister(Lease)
        self._forget_deleted({node.name: node.uid for node in nodes})
        for node in nodes:
            self._observe(node, leases.find(f"{NODE_LEASES}/{node.name}"))
        self._judge_zones()
        self._result.plan.waits = tuple(node.name for node in nodes if self._may_change(node))
        return self._result.plan.then(*self._result.nodes).then(*self._result.pods)

    def _forget_deleted(self, present: dict[str, str]) -> None:
        """Forgets deleted nodes. A node registered anew under an old name is another node."""
        remembered = self._memory.nodes
        for name in [
            name for name, health in remembered.items() if present.get(name) != health.uid
        ]:
            gone = Node(metadata=ObjectMeta(name=name, uid=remembered.pop(name).uid))
            message = f"Node {name} event: Removing Node {name} from Controller"
            self._result.plan.record(gone, "RemovingNode", message)

    def _observe(self, node: Node, lease: Lease | None) -> None:
        saved = self._memory.nodes.get(node.name)
        health = observe(node, lease, saved, self._view.moment)
        if saved is None:
            self._register(node)
        reported = health.ready
        if reported != "Unknown" and self._is_unreachable(health):
            health = self._mark_unknown(node, health)
        if health.ready != "True" or node.spec.taints:
            self._update_taints(node, health, reported)
        if health.ready != "True" and saved is not None and saved.ready == "True":
            self._mark_pods(node, health)
        self._memory.nodes[node.name] = health
        self._result.count(zone_key(node), node, health.ready == "True")

    def _register(self, node: Node) -> None:
        message = f"Node {node.name} event: Registered Node {node.name} in Controller"
        self._result.plan.record(node, "RegisteredNode", message)
        if taints.remove_no_execute(node) is not node:
            self._result.nodes.append(Patch(node, taints.remove_no_execute))

    def _is_unreachable(self, health: NodeHealth) -> bool:
        grace = self._grace.running if health.ready else self._grace.startup
        return self._view.moment > health.probe + grace

    def _mark_unknown(self, node: Node, health: NodeHealth) -> NodeHealth:
        change = partial(mark_unknown, health.heartbeat, self._view.now)
        self._result.nodes.append(Patch(node, change, status=True))
        stamp = self._view.now.replace(microsecond=0).timestamp()
        heartbeat = health.heartbeat
        if not health.ready:  # the written condition gets the node's creation as its heartbeat
            created = node.metadata.creation_timestamp
            heartbeat = created.timestamp() if created is not None else 0.0
        return health._replace(
            ready="Unknown", transition=self._view.moment, since=stamp, heartbeat=heartbeat
        )

    # --- taints and queues

    def _update_taints(self, node: Node, health: NodeHealth, reported: str) -> None:
        if health.ready == "True":
            if taints.remove_no_execute(node) is not node:
                self._result.nodes.append(Patch(node, taints.remove_no_execute))
        elif health.ready not in ("False", "Unknown"):
            return  # it has never reported, and its startup grace period is not over
        elif self._grace.eviction is None:
            self._queue_for_taint(node, health)
        elif self._is_overdue(health) and any(map(pods.is_evictable, self._pods_of(node))):
            self._queue(node)

    def _queue_for_taint(self, node: Node, health: NodeHealth) -> None:
        wanted, opposite = taints.taint_and_opposite(health.ready)
        if taints.has_taint(node, opposite):
            # Its pods are being deleted already, so this taint takes no token.
            self._result.nodes.append(Patch(node, partial(taints.add_no_execute, self._view.now)))
        elif not taints.has_taint(node, wanted):
            self._queue(node)

    def _is_overdue(self, health: NodeHealth) -> bool:
        assert self._grace.eviction is not None
        since = health.probe if health.ready == "Unknown" else health.transition
        return self._view.moment > since + self._grace.eviction

    def _queue(self, node: Node) -> None:
        self._result.queued.setdefault(zone_key(node), []).append(node.name)

    # --- pods

    def _pods_of(self, node: Node) -> list[Pod]:
        return list(self._pods.by_index(BY_NODE, node.name))

    def _mark_pods(self, node: Node, health: NodeHealth) -> None:
        """Sets the pods of an unreachable node to not ready. A reporting kubelet does that
        itself.
        """
        if health.ready != "Unknown":
            return
        plan, now = self._result.plan, self._view.now
        plan.record(node, "NodeNotReady", f"Node {node.name} status is now: NodeNotReady")
        for pod in self._pods_of(node):
            if is_ready(pod):
                self._result.pods.append(Patch(pod, partial(pods.mark_not_ready, now), status=True))
                plan.record(pod, "NodeNotReady", "Node is not ready", warning=True)

    # --- zones

    def _judge_zones(self) -> None:
        before = self._memory.zones
        states = {key: zone.state for key, zone in before.items()}
        disruption = judge_zones(states, self._result.counts, self._rates)
        if disruption.down:
            self._remove_all_taints()
        if disruption.left:
            self._memory.restart_clocks(self._view.moment)
        self._memory.zones = dict(disruption.zones)
        self._set_rates(before)
        self._fill_queues(before)

    def _remove_all_taints(self) -> None:
        """Removes the NoExecute taints of all nodes.

        If no node is ready, the fault is probably not theirs. Each pass removes them, since another
        worker may have added one that is not yet in the cache.
        """
        marks = [patch for patch in self._result.nodes if patch.status]
        nodes = self._view.lister(Node).list()
        tainted = [node for node in nodes if taints.remove_no_execute(node) is not node]
        self._result.nodes = [*marks, *(Patch(node, taints.remove_no_execute) for node in tainted)]

    def _set_rates(self, before: dict[str, Zone]) -> None:
        limits: dict[str, Limit | None] = {bucket_of(key): None for key in before}
        for key, zone in self._memory.zones.items():
            limits[bucket_of(key)] = Limit(zone.rate, max(1.0, zone.rate * EVICTION_PERIOD))
        self._result.plan.limits = limits

    def _fill_queues(self, before: dict[str, Zone]) -> None:
        """Sets the zones' queues to the nodes of this pass. Those queued before keep their
        times.
        """
        since = {name: at for zone in before.values() for name, at in zone.queue.items()}
        for key, names in self._result.queued.items():
            zone = self._memory.zones[key]
            queue = [(since.get(name, self._view.moment), name) for name in names]
            zone.queue = {name: at for at, name in sorted(queue)}
            if zone.rate > 0 and any(name not in since for name in names):
                self._result.plan.wakes = (TAINTING if self._grace.eviction is None else EVICTING,)


EVICTION_PERIOD = 1.0  # seconds between passes over the queues; upstream's period is 0.1
TAINTING = "doNoExecuteTaintingPass"
EVICTING = "doEvictionPass"


def bucket_of(zone: str) -> str:
    """Returns the name of the token bucket of a zone.

    At rates above one per second the bucket holds the tokens of a second, since there is one pass
    per second. Upstream's bucket holds one token, and there are ten passes per second.
    """
    return f"nodelifecycle:{zone}"
