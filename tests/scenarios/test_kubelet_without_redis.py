"""A real node whose Redis is away: pods run on, and what dies is restarted by its policy."""

from __future__ import annotations

import os
import signal
import time
import urllib.request
from collections.abc import Callable, Iterator
from functools import partial
from itertools import pairwise
from typing import Any

import pytest

from kcm.api.core_v1 import ContainerStatus, Node, Pod
from kcm.kubelet.environment.store_lookups import TTL
from kcm.testing import builders
from kcm.testing.waiting import let_time_pass, until
from tests.chaos.cluster import Cluster
from tests.chaos.realnode import NODE
from tests.chaos.world import PODS
from tests.new_objects import strip_store_fields

pytestmark = pytest.mark.scenario

NODES = Node.resource
SHORT = 10  # seconds that Redis is away
LONG = pytest.param(60, marks=pytest.mark.long)
FIRST_WAIT = 10  # seconds of a crash loop, doubled each time
CODE = 7  # of what crashes


class World:
    """A control plane and a node of this machine, all behind one link to Redis."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster

    def run(self, name: str, script: str, **spec: Any) -> None:
        """A pod that notes its process and the time at each start."""
        # In a command `$$$$` stands for `$$`, the shell's own pid.
        note = f"echo $$$$ $(date +%s) >> {self._notes(name)}"
        container = builders.container("main", command=["sh", "-c", f"{note}; {script}"])
        fields: dict[str, Any] = {"node": NODE, "termination_grace_period_seconds": 1, **spec}
        self.cluster.store.create(
            strip_store_fields(builders.pod(name, containers=[container], **fields))
        )

    def _notes(self, name: str) -> str:
        return str(self.cluster.folder / f"starts-{name}")

    def starts(self, name: str) -> list[tuple[int, int]]:
        """Process and time, in whole seconds, of each start."""
        try:
            with open(self._notes(name), encoding="ascii") as file:
                lines = file.read().splitlines()
        except FileNotFoundError:
            return []
        return [(int(pid), int(at)) for pid, at in (line.split() for line in lines)]

    def kill(self, name: str) -> None:
        """kill -9 of the pod's running process."""
        pid, _ = self.starts(name)[-1]
        os.kill(pid, signal.SIGKILL)

    def pod(self, name: str) -> Pod:
        obj = self.cluster.store.get(PODS, f"default/{name}")
        assert isinstance(obj, Pod)
        return obj

    def container(self, name: str) -> ContainerStatus:
        statuses = self.pod(name).status.container_statuses
        return statuses[0] if statuses else ContainerStatus(name="main")

    def is_running(self, name: str) -> bool:
        state = self.container(name).state
        return state is not None and state.running is not None

    def node(self) -> Node:
        obj = self.cluster.store.get(NODES, NODE)
        assert isinstance(obj, Node)
        return obj

    def is_ready(self) -> bool:
        """Whether the node is, and nobody keeps pods from it."""
        conditions = self.node().status.conditions or ()
        ready = any(c.type == "Ready" and c.status == "True" for c in conditions)
        return ready and not self.node().spec.taints

    def health(self) -> Callable[[], str]:
        """Asks the kubelet itself, which needs no Redis."""
        endpoints = self.node().status.daemon_endpoints
        assert endpoints is not None
        assert endpoints.kubelet_endpoint is not None
        port = endpoints.kubelet_endpoint.port

        def ask() -> str:
            url = f"http://127.0.0.1:{port}/healthz"
            return str(urllib.request.urlopen(url, timeout=10).read().decode())

        return ask


@pytest.fixture
def world() -> Iterator[World]:
    cluster = Cluster(workers=1, beats=1)
    cluster.node.wanted = True
    world = World(cluster)
    try:
        cluster.start()
        until(lambda: cluster.store.count(NODES) == 1, "the node's registration")
        until(world.is_ready, "that the node is ready")
        yield world
    finally:
        cluster.stop()


def kill_the_server(cluster: Cluster) -> Callable[[], None]:
    """kill -9 of Redis; call the result to start it again."""
    cluster.wait_until_saved()
    process = cluster.server.process
    assert process is not None
    process.kill()
    process.wait()
    return cluster.server.start


def swallow_everything(cluster: Cluster) -> Callable[[], None]:
    """A link that is half open: no answer, and no error."""
    cluster.proxy.freeze()
    return cluster.proxy.thaw


@pytest.mark.parametrize("seconds", [SHORT, LONG])
@pytest.mark.parametrize(
    "go_away", [pytest.param(kill_the_server, marks=pytest.mark.long), swallow_everything]
)
def test_pods_live_by_their_policies_while_redis_is_away(
    world: World, go_away: Callable[[Cluster], Callable[[], None]], seconds: int
) -> None:
    for name in ("steady", "mortal"):
        world.run(name, "exec sleep 1000")
    world.run("once", "exec sleep 1000", restart_policy="Never")
    world.run("crashing", f"exit {CODE}")
    for name in ("steady", "mortal", "once"):
        until(partial(world.is_running, name))
    until(lambda: len(world.starts("crashing")) == 2, "the crash loop")
    uids = {name: world.pod(name).uid for name in ("steady", "mortal", "once", "crashing")}
    health = world.health()

    let_time_pass(TTL + 1, "what the kubelet has read of other objects gets old")
    come_back = go_away(world.cluster)
    gone = time.monotonic()
    for name in ("mortal", "once"):
        world.kill(name)
    until(lambda: len(world.starts("mortal")) == 2, "a restart during the outage")
    assert health() == "ok"
    let_time_pass(gone + seconds - time.monotonic(), "Redis is away")
    assert health() == "ok"
    restarts = len(world.starts("crashing")) - 2
    come_back()
    if seconds > 3 * FIRST_WAIT:
        assert restarts > 0, "a crash loop goes on during the outage"

    until(lambda: world.pod("once").status.phase == "Failed", "the end of what runs once")
    until(lambda: world.container("mortal").restart_count == 1, "the count of restarts")
    until(lambda: world.is_running("mortal"), "the new container's status")
    until(
        lambda: caught_up(world, "crashing"),
        "the crash loop's status",
        words=lambda: f"{world.starts('crashing')} {world.container('crashing')}",
    )
    until(world.is_ready, "that the node is ready")
    assert health() == "ok"
    last = world.container("mortal").last_state
    assert last is not None
    assert last.terminated is not None
    assert last.terminated.exit_code == 128 + signal.SIGKILL
    assert [len(world.starts(name)) for name in ("steady", "mortal", "once")] == [1, 2, 1]
    assert world.container("steady").restart_count == 0
    assert uids == {name: world.pod(name).uid for name in uids}
    assert_backed_off([at for _, at in world.starts("crashing")])


def caught_up(world: World, name: str) -> bool:
    """Whether a crash loop went on, and its status tells of the last crash.

    An attempt that is being started counts, and has noted nothing yet.
    """
    starts, status = world.starts(name), world.container(name)
    last = status.last_state.terminated if status.last_state else None
    has_failed = last is not None and last.exit_code == CODE
    return len(starts) > 2 and has_failed and status.restart_count - len(starts) in (-1, 0)


def assert_backed_off(times: list[int]) -> None:
    """At once the first time, then each wait is twice the last one."""
    waits = [later - earlier for earlier, later in pairwise(times)][1:]
    least = [FIRST_WAIT * 2**number - 1 for number in range(len(waits))]  # in whole seconds
    assert all(wait >= short for wait, short in zip(waits, least, strict=True)), waits
