"""Nodes in memory with their heartbeats and the node lifecycle passes, on a clock that tests
step.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from kcm.api.core_v1 import Node, NodeCondition, Pod, Taint
from kcm.controllers.nodelifecycle.controller import (
    MONITORING,
    NodeLifecycleController,
    NodeLifecycleOptions,
)
from kcm.controllers.nodelifecycle.memory import load_zones
from kcm.controllers.nodelifecycle.monitor import bucket_of
from kcm.controllers.nodelifecycle.zones import Zone
from kcm.reconcile.plan import Event, PassPlan
from kcm.testing.builders import START, lease, node, pod
from kcm.testing.views import FakeView
from kcm.testing.world import World

ZONE = "topology.kubernetes.io/zone"


class Silence:
    """A cluster whose nodes send a heartbeat every second, except those in `silent`."""

    def __init__(self, *nodes: Node, pods: tuple[Pod, ...] = (), **options: Any) -> None:
        times = {"node_monitor_period": 1, "node_monitor_grace_period": 10}  # pydantic: seconds
        self.controller = NodeLifecycleController(NodeLifecycleOptions(**times | options))
        self.world = World(*nodes, *pods)
        self.world.now = START
        self.seconds = 0.0
        self.state: dict[str, str] = {}
        self.events: list[Event] = []
        self.silent: set[str] = set()
        self.tainted_at: dict[str, float] = {}
        self.unknown_at: dict[str, float] = {}
        self.epoch = "0"
        self.counts: Counter[str] = Counter()  # what passes added to their counters

    # --- time

    def run(self, seconds: float) -> None:
        """Steps the clock second by second; each second has heartbeats, a health pass and a taint
        pass.
        """
        for _ in range(int(seconds)):
            self.step(1)
            self.beat()
            self.monitor()
            self.work_off()

    def step(self, seconds: float) -> None:
        self.seconds += seconds
        self.world.now = START + timedelta(seconds=self.seconds)

    def beat(self) -> None:
        """Renews the lease of every node that is not in `silent`, and reports an unknown one as
        ready.
        """
        for observed in self.nodes():
            if observed.name not in self.silent:
                renewed = lease(observed.name, namespace="kube-node-lease", renewed=self.world.now)
                self.world.put(renewed)
                if self.ready(observed.name) == "Unknown":
                    self.report(observed.name, "True")

    def report(self, name: str, ready: str = "True", **others: str) -> None:
        """Writes a status heartbeat of a node."""
        now = self.world.now
        conditions = [
            NodeCondition(type=type, status=word, last_heartbeat_time=now, last_transition_time=now)
            for type, word in {"Ready": ready, **others}.items()
        ]
        node = self.node(name)
        self.put(node.with_status(node.status.replace(conditions=conditions)))

    def put(self, new: Node) -> None:
        self.world.put(new)

    # --- passes

    def view(self) -> FakeView:
        return FakeView(
            *self.world.objects.values(),
            now=self.world.now,
            controller=self.controller,
            moment=1e9 + self.seconds,
            epoch=self.epoch,
        )

    def monitor(self, *, dies: bool = False) -> PassPlan:
        """Makes a health pass over all nodes and returns its plan.

        With `dies` the pass loses its memory and its events, but not its writes, as if its worker
        had crashed.
        """
        tick = self.controller.ticks()[0]
        assert tick.name == MONITORING
        plan = tick.run(self.view(), self.state)
        self.world.carry_out(plan)
        if not dies:
            assert plan.state is not None
            self.state = dict(plan.state)
            self.events += plan.events
        for observed in self.nodes():
            if self.ready(observed.name) == "Unknown":
                self.unknown_at.setdefault(observed.name, self.seconds)
        return plan

    def work_off(self) -> PassPlan:
        """Makes a pass over the taint queues."""
        tick = self.controller.ticks()[1]
        plan = tick.run(self.view(), {field: self.state[field] for field in tick.fields})
        outcome = self.world.carry_out(plan)
        self.events += plan.events_after(outcome)
        self.counts.update(plan.counts_after(outcome))
        for observed in self.nodes():
            if self.keys(observed.name, "NoExecute"):
                self.tainted_at.setdefault(observed.name, self.seconds)
        return plan

    def sync(self, key: str) -> None:
        self.world.carry_out(self.controller.reconcile(key, self.view()))

    # --- what became of it

    def nodes(self) -> list[Node]:
        return self.world.of(Node)

    def node(self, name: str) -> Node:
        obj = self.world.objects[("nodes", name)]
        assert isinstance(obj, Node)
        return obj

    def pod(self, name: str) -> Pod:
        obj = self.world.objects[("pods", f"default/{name}")]
        assert isinstance(obj, Pod)
        return obj

    def condition(self, name: str, type: str = "Ready") -> NodeCondition | None:
        conditions = self.node(name).status.conditions or ()
        return next((c for c in conditions if c.type == type), None)

    def ready(self, name: str) -> str:
        condition = self.condition(name)
        return condition.status if condition is not None else ""

    def keys(self, name: str, effect: str) -> list[str]:
        taints = self.node(name).spec.taints or ()
        return [taint.key.rpartition("/")[2] for taint in taints if taint.effect == effect]

    def zones(self) -> Mapping[str, Zone]:
        return load_zones(self.state)

    def rate(self, zone: str = "") -> float:
        io = self.world.io
        return float(io.execute("HGET", io.keys.limiter(bucket_of(zone)), "qps"))

    def has_limit(self, zone: str) -> bool:
        io = self.world.io
        return bool(io.execute("EXISTS", io.keys.limiter(bucket_of(zone))))

    def messages_of(self, reason: str) -> list[str]:
        return [event.message for event in self.events if event.reason == reason]


def in_zone(name: str, zone: str, **fields: Any) -> Node:
    return node(name, labels={ZONE: zone}, **fields)


def no_execute(key: str, since: datetime = START) -> Taint:
    return Taint(key=f"node.kubernetes.io/{key}", effect="NoExecute", time_added=since)


def build_running_pod(name: str, on: str, **fields: Any) -> Any:
    return pod(name, node=on, phase="Running", ready=True, **fields)
