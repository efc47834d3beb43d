"""A simulator with a private server, and a clock that tests step."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from kcm.api import codec
from kcm.api.coordination_v1 import Lease
from kcm.api.core_v1 import Node, Pod
from kcm.kinds.printing import pod_status
from kcm.reconcile.plan import Event
from kcm.redisio import RedisIO
from kcm.settings import Settings
from kcm.simulation.options import SimulatorOptions
from kcm.simulation.scripting import stages
from kcm.simulation.scripting.behaviour import Pace
from kcm.simulation.scripting.stages import Stages
from kcm.simulation.simulator import Simulator
from kcm.store import DeleteOptions, Store
from kcm.store.resource_metrics.answers import StoredMetrics
from kcm.store.resource_metrics.usage import UsageBoard
from kcm.testing.clock import FakeClock

PODS, NODES = Pod.resource, Node.resource
LEASES = Lease.resource
OPTIONS = SimulatorOptions(
    count=3, pace=Pace(start_after=1.0, start_jitter=0.0, run_for=2.0, stop_after=1.0)
)


class Recorded:
    """Keeps Events in memory instead of writing them."""

    def __init__(self) -> None:
        self.events: list[tuple[str, str, str]] = []

    def record(self, event: Event, component: str, host: str = "") -> None:
        self.events.append((host, event.reason, event.message))


class World:
    """A simulator, a user's store and a clock."""

    def __init__(self, io: RedisIO, user: RedisIO) -> None:
        self.clock = FakeClock()
        self.io = io
        self.store = Store(user, self.clock)
        self.recorded = Recorded()
        self.options = OPTIONS
        self.stages: Stages = stages.NO_STAGES
        self.simulator: Simulator
        self.restart()

    def restart(self, **options: Any) -> None:
        """Replaces the simulator by a new one, which has to read everything."""
        self.options = replace(self.options, **options)
        self.simulator_store = Store(self.io, self.clock)
        self.simulator = Simulator(
            self.simulator_store,
            self.options,
            self.clock,
            stages=self.stages,
            recorder=self.recorded,
            board=UsageBoard(self.io),
        )

    def go(self, seconds: float = 0.0, step: float = 0.5) -> None:
        """Steps the clock in small steps, with a turn of the simulator after each.

        There are at least three turns.
        """
        for _ in range(3):
            self.simulator.turn(0)
        for _ in range(round(seconds / step)):
            self.clock.step(step)
            self.simulator.turn(0)
        self.simulator.turn(0)

    def pod(self, name: str, node: str = "node-1", **parts: Any) -> Pod:
        """Creates a pod bound to a node, with annotations, labels, and fields of the spec."""
        metadata = {"name": name, "namespace": "default"}
        metadata |= {k: parts.pop(k) for k in ("annotations", "labels") if k in parts}
        main = {"name": "main", "image": "i:1", "resources": {"requests": {"cpu": "1"}}}
        spec = {"nodeName": node, "containers": [main], **parts}
        body = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
        return self.store.create(codec.decode(body, PODS))

    def get(self, name: str) -> Pod:
        return self.store.get(PODS, f"default/{name}")

    def list_pods(self) -> dict[str, str]:
        """Returns READY and STATUS of all pods, by name."""
        pods = self.store.list(PODS).items
        return {p.name: f"{pod_status.ready(p)} {pod_status.reason(p)}" for p in pods}

    def node(self, name: str) -> Node:
        return self.store.get(NODES, name)

    def ready(self, name: str) -> str:
        """Returns the status of the node's Ready condition."""
        return next(c.status for c in self.node(name).status.conditions or () if c.type == "Ready")

    def seconds_since_renewal(self, name: str) -> float:
        """Returns the seconds since the last renewal of the node's lease."""
        lease = self.store.get(LEASES, f"kube-node-lease/{name}")
        assert lease.spec.renew_time is not None
        return (self.clock.now() - lease.spec.renew_time).total_seconds()

    @property
    def metrics(self) -> StoredMetrics:
        """Returns the metrics that the nodes have reported."""
        return StoredMetrics(UsageBoard(self.io), self.clock)

    def keep(self, resource: str, key: str) -> Callable[[], object]:
        """Returns what undoes the later writes to an object, as a failover does that loses them."""
        stored = self.io.keys.object(resource, key)
        copied = stored + ":copied"
        self.io.execute("COPY", stored, copied, "REPLACE")
        return partial(self.io.execute, "COPY", copied, stored, "REPLACE")

    def delete(self, name: str, **options: Any) -> None:
        self.store.delete(PODS, f"default/{name}", DeleteOptions(**options))


@pytest.fixture
def world(io: RedisIO, settings: Settings) -> Iterator[World]:
    user = RedisIO(settings)
    user.attach()
    yield World(io, user)
    user.close()
