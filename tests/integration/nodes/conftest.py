"""Workers of the node controllers in this process, on a real server whose clock is stepped."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from kcm.api.coordination_v1 import Lease
from kcm.api.core_v1 import Node, Pod, PodCondition
from kcm.controllers.nodelifecycle.controller import NodeLifecycleController, NodeLifecycleOptions
from kcm.controllers.tainteviction import TaintEvictionController
from kcm.manager.context.context import ControllerContext, build_context
from kcm.manager.ticks.runner import TickRunner
from kcm.redisio import RedisIO
from kcm.settings import Settings
from kcm.store import Store
from kcm.testing import builders
from tests.new_objects import make_namespaces, strip_store_fields
from tests.typed_objects import get_object, list_objects

NODES = Node.resource
PODS = Pod.resource
LEASES = Lease.resource
MONITOR = "nodelifecycle.monitorNodeStatus"
TAINT = "nodelifecycle.doNoExecuteTaintingPass"
EVICT = "nodelifecycle.doEvictionPass"
ZONE = "topology.kubernetes.io/zone"


class Worker:
    """The ticks and syncs of one worker's process."""

    def __init__(self, settings: Settings, **options: Any) -> None:
        self.context: ControllerContext = build_context(settings)
        times = {"node_monitor_period": 5, "node_monitor_grace_period": 42}
        controllers = (
            NodeLifecycleController(NodeLifecycleOptions(**times | options)),
            TaintEvictionController(),
        )
        self.context.selection = replace(self.context.selection, started=controllers)
        self.context.start()
        self.ticks = TickRunner(self.context)
        self.io = self.context.io

    def run(self, loop: str, due: float) -> bool:
        return self.ticks.run(loop, due) is not None


class Cluster:
    """Nodes and pods in the store, and the scripts' clock, which it steps for every worker."""

    def __init__(self, io: RedisIO) -> None:
        self.io = io
        self.store = Store(io)
        self.workers: list[Worker] = []
        self.due = 1000.0
        self.renewals = 0
        make_namespaces(self.store, "default", "kube-node-lease")

    def node(self, name: str, zone: str = "a", pods: int = 0) -> None:
        self.store.create(strip_store_fields(builders.node(name, labels={ZONE: zone})))
        self.store.create(strip_store_fields(builders.lease(name, namespace="kube-node-lease")))
        for number in range(pods):
            pod = builders.pod(f"{name}-{number}", node=name, phase="Running", ready=True)
            stored = self.store.create(strip_store_fields(pod))
            self.store.update_status(stored.with_status(pod.status))

    def renew(self, *names: str) -> None:
        """Renews the lease of each node."""
        self.renewals += 1
        for name in names:
            old = self.store.get(LEASES, f"kube-node-lease/{name}")
            assert isinstance(old, Lease)
            renewed = datetime.fromtimestamp(1e9 + self.renewals, UTC)
            self.store.update(old.with_spec(old.spec.replace(renew_time=renewed)))

    def step(self, seconds: float) -> None:
        self.due += seconds
        for io in (self.io, *(worker.io for worker in self.workers)):
            io.clock_offset_ms += round(seconds * 1000)

    def moment(self) -> float:
        """Returns the time of the server's clock, as stepped, in seconds."""
        seconds, microseconds = self.io.execute("TIME")
        return int(seconds) + int(microseconds) / 1e6 + self.io.clock_offset_ms / 1000

    def fall_silent(self, worker: Worker, *alive: str, seconds: int = 45) -> None:
        """Steps through `seconds` seconds in which only the nodes `alive` renew their leases."""
        for _ in range(seconds // 5):
            self.step(5)
            self.renew(*alive)
            assert worker.run(MONITOR, self.due)

    def get_node(self, name: str) -> Node:
        return get_object(self.store, Node, name)

    def readiness(self, name: str) -> str:
        """Returns the status of the node's first condition, which is Ready."""
        return (self.get_node(name).status.conditions or [])[0].status

    def pod_conditions(self) -> list[PodCondition]:
        """Returns the first condition of every pod, which is Ready."""
        return [(pod.status.conditions or [])[0] for pod in list_objects(self.store, Pod)]

    def list_tainted(self) -> list[str]:
        nodes = self.store.list(NODES).items
        return [n.name for n in nodes if isinstance(n, Node) and _no_execute(n)]

    def taint_writes(self) -> list[str]:
        """Returns the node of each NoExecute taint in the order of writing, from the watch log."""
        seen: dict[str, bool] = {}
        names = []
        for change in self.store.read_changes({NODES: 0}, 0).entries:
            node = NODES.model.model_validate_json(change.raw)
            assert isinstance(node, Node)
            if _no_execute(node) and not seen.get(node.name):
                names.append(node.name)
            seen[node.name] = _no_execute(node)
        return names


def _no_execute(node: Node) -> bool:
    return any(taint.effect == "NoExecute" for taint in node.spec.taints or ())


@pytest.fixture
def cluster(io: RedisIO) -> Cluster:
    return Cluster(io)


Hire = Callable[..., Worker]


@pytest.fixture
def hire(settings: Settings, cluster: Cluster) -> Iterator[Hire]:
    """Yields a function that starts a worker."""

    def make(**options: Any) -> Worker:
        worker = Worker(settings, **options)
        worker.io.clock_offset_ms = cluster.io.clock_offset_ms
        cluster.workers.append(worker)
        return worker

    yield make
    for worker in cluster.workers:
        worker.context.shutdown()
