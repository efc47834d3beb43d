"""One look at all nodes: who is new, who is gone, who fell silent, how the zones do.

Source: monitorNodeHealth, processTaintBaseEviction, handleDisruption in
pkg/controller/nodelifecycle/node_lifecycle_controller.go, Kubernetes 1.33;
processNoTaintBaseEviction as it was up to 1.26.

Departures: a node is queued in the pass that marks it, not in the next one; what the last
completed pass saw decides whether a node just became not ready, so that a pass which died
half-way is made good by the next; while all zones are down, each pass takes taints back, not
only the first, for another worker may just have put one on.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial

from kcm.api.coordination_v1 import Lease
from kcm.api.core_v1 import Node, Pod
from kcm.apimachinery.meta_v1 import ObjectMeta
from kcm.controllers.nodelifecycle import pods, taints
from kcm.controllers.nodelifecycle.health import observe, silenced
from kcm.controllers.nodelifecycle.memory import Health, Memory
from kcm.controllers.nodelifecycle.zones import EXCLUDED, Rates, Zone, judge, zone_key
from kcm.helpers.pods import is_ready
from kcm.reconcile.contract import BY_NODE, PassView
from kcm.reconcile.plan import Limit, Patch, Plan

NODE_LEASES = "kube-node-lease"  # namespace


@dataclass(frozen=True)
class Grace:
    """The flags that say how long; seconds."""

    running: float  # of a node that has reported
    startup: float  # of one that never has
    eviction: float | None  # direct eviction's; None: taints are put on instead


@dataclass
class _Found:
    """What the look comes to."""

    plan: Plan = field(default_factory=Plan)
    nodes: list[Patch] = field(default_factory=list)
    pods: list[Patch] = field(default_factory=list)
    counts: dict[str, tuple[int, int]] = field(default_factory=dict)
    queued: dict[str, list[str]] = field(default_factory=dict)  # by zone

    def count(self, zone: str, node: Node, ready: bool) -> None:
        """Nodes that are excluded do not speak for their zone."""
        good, bad = self.counts.get(zone, (0, 0))
        if EXCLUDED not in node.labels:
            good, bad = (good + 1, bad) if ready else (good, bad + 1)
        self.counts[zone] = (good, bad)


class Monitor:
    """One pass. `memory` is changed into what is to be remembered."""

    def __init__(self, view: PassView, memory: Memory, grace: Grace, rates: Rates) -> None:
        self._view = view
        self._memory = memory
        self._grace = grace
        self._rates = rates
        self._found = _Found()
        self._pods = view.lister(Pod)

    def run(self) -> Plan:
        nodes = self._view.lister(Node).list()
        leases = self._view.lister(Lease)
        self._forget_deleted({node.name: node.uid for node in nodes})
        for node in nodes:
            self._look(node, leases.find(f"{NODE_LEASES}/{node.name}"))
        self._judge_zones()
        return self._found.plan.then(*self._found.nodes).then(*self._found.pods)

    def _forget_deleted(self, present: dict[str, str]) -> None:
        """A node registered anew under its old name is another one."""
        known = self._memory.nodes
        for name in [name for name, health in known.items() if present.get(name) != health.uid]:
            gone = Node(metadata=ObjectMeta(name=name, uid=known.pop(name).uid))
            message = f"Node {name} event: Removing Node {name} from Controller"
            self._found.plan.record(gone, "RemovingNode", message)

    def _look(self, node: Node, lease: Lease | None) -> None:
        saved = self._memory.nodes.get(node.name)
        health = observe(node, lease, saved, self._view.moment)
        if saved is None:
            self._welcome(node)
        reported = health.ready
        if reported != "Unknown" and self._is_silent(health):
            health = self._silence(node, health)
        if health.ready != "True" or node.spec.taints:
            self._tend(node, health, reported)
        if health.ready != "True" and saved is not None and saved.ready == "True":
            self._became_not_ready(node, health)
        self._memory.nodes[node.name] = health
        self._found.count(zone_key(node), node, health.ready == "True")

    def _welcome(self, node: Node) -> None:
        message = f"Node {node.name} event: Registered Node {node.name} in Controller"
        self._found.plan.record(node, "RegisteredNode", message)
        if taints.reachable(node) is not node:
            self._found.nodes.append(Patch(node, taints.reachable))

    def _is_silent(self, health: Health) -> bool:
        grace = self._grace.running if health.ready else self._grace.startup
        return self._view.moment > health.probe + grace

    def _silence(self, node: Node, health: Health) -> Health:
        change = partial(silenced, health.heartbeat, self._view.now)
        self._found.nodes.append(Patch(node, change, status=True))
        stamp = self._view.now.replace(microsecond=0).timestamp()
        heartbeat = health.heartbeat
        if not health.ready:  # what we write then says when the node was created
            created = node.metadata.creation_timestamp
            heartbeat = created.timestamp() if created is not None else 0.0
        return health._replace(
            ready="Unknown", transition=self._view.moment, since=stamp, heartbeat=heartbeat
        )

    # --- taints and queues

    def _tend(self, node: Node, health: Health, reported: str) -> None:
        if health.ready == "True":
            if taints.reachable(node) is not node:
                self._found.nodes.append(Patch(node, taints.reachable))
        elif health.ready not in ("False", "Unknown"):
            return  # never reported, and its time is not over
        elif self._grace.eviction is None:
            self._queue_for_taint(node, health)
        elif self._is_overdue(health) and any(map(pods.evictable, self._pods_of(node))):
            self._queue(node)

    def _queue_for_taint(self, node: Node, health: Health) -> None:
        wanted, opposite = taints.wanted_and_opposite(health.ready)
        if taints.has_taint(node, opposite):
            # Its pods are on their way out already: no limit on telling them why.
            self._found.nodes.append(Patch(node, partial(taints.tainted, self._view.now)))
        elif not taints.has_taint(node, wanted):
            self._queue(node)

    def _is_overdue(self, health: Health) -> bool:
        assert self._grace.eviction is not None
        since = health.probe if health.ready == "Unknown" else health.transition
        return self._view.moment > since + self._grace.eviction

    def _queue(self, node: Node) -> None:
        self._found.queued.setdefault(zone_key(node), []).append(node.name)

    # --- pods

    def _pods_of(self, node: Node) -> list[Pod]:
        return list(self._pods.by_index(BY_NODE, node.name))

    def _became_not_ready(self, node: Node, health: Health) -> None:
        """What the kubelet says of itself it also says of its pods; we speak for a silent one."""
        if health.ready != "Unknown":
            return
        plan, now = self._found.plan, self._view.now
        plan.record(node, "NodeNotReady", f"Node {node.name} status is now: NodeNotReady")
        for pod in self._pods_of(node):
            if is_ready(pod):
                self._found.pods.append(Patch(pod, partial(pods.not_ready, now), status=True))
                plan.record(pod, "NodeNotReady", "Node is not ready", warning=True)

    # --- zones

    def _judge_zones(self) -> None:
        before = self._memory.zones
        states = {key: zone.state for key, zone in before.items()}
        found = judge(states, self._found.counts, self._rates)
        if found.down:
            self._stop_everything()
        if found.left:
            self._memory.restart_clocks(self._view.moment)
        self._memory.zones = dict(found.zones)
        self._set_rates(before)
        self._fill_queues(before)

    def _stop_everything(self) -> None:
        """When no node is ready, the trouble is rather ours: nothing is to be driven out.

        In each pass anew, for a taint may have been paid for and not be seen yet.
        """
        marks = [patch for patch in self._found.nodes if patch.status]
        nodes = self._view.lister(Node).list()
        tainted = [node for node in nodes if taints.reachable(node) is not node]
        self._found.nodes = [*marks, *(Patch(node, taints.reachable) for node in tainted)]

    def _set_rates(self, before: dict[str, Zone]) -> None:
        limits: dict[str, Limit | None] = {bucket(key): None for key in before}
        for key, zone in self._memory.zones.items():
            limits[bucket(key)] = Limit(zone.rate, max(1.0, zone.rate * EVICTION_PERIOD))
        self._found.plan.limits = limits

    def _fill_queues(self, before: dict[str, Zone]) -> None:
        """Who waits already keeps its place; who was dealt with is no longer named."""
        since = {name: at for zone in before.values() for name, at in zone.queue.items()}
        for key, names in self._found.queued.items():
            zone = self._memory.zones[key]
            queue = [(since.get(name, self._view.moment), name) for name in names]
            zone.queue = {name: at for at, name in sorted(queue)}
            if zone.rate > 0 and any(name not in since for name in names):
                self._found.plan.wakes = (TAINTING if self._grace.eviction is None else EVICTING,)


EVICTION_PERIOD = 1.0  # seconds between passes over the queues; upstream's are 0.1
TAINTING = "doNoExecuteTaintingPass"
EVICTING = "doEvictionPass"


def bucket(zone: str) -> str:
    """The token bucket of a zone. At rates above one a second it holds a second's worth,
    for the passes come once a second; upstream's holds one and is asked ten times as often."""
    return f"nodelifecycle:{zone}"
