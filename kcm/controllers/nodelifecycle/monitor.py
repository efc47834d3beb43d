"""One pass over all nodes: which are new, gone or unreachable, and the states of the zones.

Source: monitorNodeHealth, processTaintBaseEviction, handleDisruption in
pkg/controller/nodelifecycle/node_lifecycle_controller.go, Kubernetes 1.33;
processNoTaintBaseEviction as it was up to 1.26.

Departures: a node is queued in the pass that marks it, not in the next one. What the last completed
pass saw decides whether a node just became not ready, so that the next pass makes up for one that
died. While all zones are down, each pass removes taints, not only the first, since another worker
may just have put one on.
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
from kcm.reconcile.contract import BY_NODE, PassView
from kcm.reconcile.plan import Limit, Patch, Plan

NODE_LEASES = "kube-node-lease"  # the namespace


@dataclass(frozen=True)
class GracePeriods:
    """The flags that say how long, in seconds."""

    running: float  # of a node that has reported
    startup: float  # of a node that has never reported
    eviction: float | None  # the grace of direct eviction; None puts taints on instead


@dataclass
class _PassResult:
    """What a pass comes to."""

    plan: Plan = field(default_factory=Plan)
    nodes: list[Patch] = field(default_factory=list)
    pods: list[Patch] = field(default_factory=list)
    counts: dict[str, tuple[int, int]] = field(default_factory=dict)
    queued: dict[str, list[str]] = field(default_factory=dict)  # keyed by zone

    def count(self, zone: str, node: Node, ready: bool) -> None:
        """Counts a node for its zone, unless it is excluded."""
        good, bad = self.counts.get(zone, (0, 0))
        if EXCLUDED not in node.labels:
            good, bad = (good + 1, bad) if ready else (good, bad + 1)
        self.counts[zone] = (good, bad)


class Monitor:
    """One pass. It turns `memory` into what is to be remembered."""

    def __init__(
        self, view: PassView, memory: LifecycleMemory, grace: GracePeriods, rates: EvictionRates
    ) -> None:
        self._view = view
        self._memory = memory
        self._grace = grace
        self._rates = rates
        self._result = _PassResult()
        self._pods = view.lister(Pod)

    def run(self) -> Plan:
        nodes = self._view.lister(Node).list()
        leases = self._view.lister(Lease)
        self._forget_deleted({node.name: node.uid for node in nodes})
        for node in nodes:
            self._observe(node, leases.find(f"{NODE_LEASES}/{node.name}"))
        self._judge_zones()
        return self._result.plan.then(*self._result.nodes).then(*self._result.pods)

    def _forget_deleted(self, present: dict[str, str]) -> None:
        """Forgets deleted nodes. A node registered anew under an old name is another node."""
        known = self._memory.nodes
        for name in [name for name, health in known.items() if present.get(name) != health.uid]:
            gone = Node(metadata=ObjectMeta(name=name, uid=known.pop(name).uid))
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
        if not health.ready:  # the Unknown written then tells when the node was created
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
            return  # it never reported, and its time is not over
        elif self._grace.eviction is None:
            self._queue_for_taint(node, health)
        elif self._is_overdue(health) and any(map(pods.is_evictable, self._pods_of(node))):
            self._queue(node)

    def _queue_for_taint(self, node: Node, health: NodeHealth) -> None:
        wanted, opposite = taints.taint_and_opposite(health.ready)
        if taints.has_taint(node, opposite):
            # Its pods are being deleted already, so the reason may be given without limit.
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
        """Marks the pods of an unreachable node. A kubelet that reports marks its pods itself."""
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
        """Removes all taints: when no node is ready, the fault is probably here, not theirs.

        Each pass does it anew, since a taint may have been paid for and not be seen yet.
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
        """Queues nodes. Those that wait already keep their place; those dealt with are removed."""
        since = {name: at for zone in before.values() for name, at in zone.queue.items()}
        for key, names in self._result.queued.items():
            zone = self._memory.zones[key]
            queue = [(since.get(name, self._view.moment), name) for name in names]
            zone.queue = {name: at for at, name in sorted(queue)}
            if zone.rate > 0 and any(name not in since for name in names):
                self._result.plan.wakes = (TAINTING if self._grace.eviction is None else EVICTING,)


EVICTION_PERIOD = 1.0  # seconds between passes over the queues; upstream's are 0.1
TAINTING = "doNoExecuteTaintingPass"
EVICTING = "doEvictionPass"


def bucket_of(zone: str) -> str:
    """Returns the token bucket of a zone.

    At rates above one a second it holds the tokens of a second, since the passes come once a
    second. Upstream's bucket holds one and is asked ten times as often.
    """
    return f"nodelifecycle:{zone}"
