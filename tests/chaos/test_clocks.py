"""The clock of the machine, or of the server's or the workers' machine alone, is set."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kcm.api.core_v1 import Node
from kcm.cli.evictions import MONITOR
from kcm.errors import NotFound
from kcm.testing.waiting import until
from tests.chaos import faults, workload
from tests.chaos.cluster import RECOVERY, Cluster
from tests.chaos.realnode import NODE

HOUR = 3600


class Clocks:
    """The clocks of the server's machine and of everybody else's."""

    def __init__(self, folder: Path, library: Path) -> None:
        self._folder = folder
        self._library = library
        self.set(0, "server", "others")

    def set(self, offset: int, *whose: str) -> None:
        """Put these clocks so many seconds off."""
        for clock in whose:
            file = self._folder / clock
            file.touch()
            with file.open("r+b") as out:  # in place: it is mapped by those who read it
                out.write(offset.to_bytes(8, sys.byteorder, signed=True))

    def environment(self, whose: str) -> dict[str, str]:
        """With which a process sees such a clock."""
        return {"LD_PRELOAD": str(self._library), "KCM_CLOCK": str(self._folder / whose)}


@pytest.fixture(scope="module")
def clocks(tmp_path_factory: pytest.TempPathFactory) -> Clocks:
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("there is no C compiler, which the library that sets clocks needs")
    folder = tmp_path_factory.mktemp("clocks")
    source, library = Path(__file__).with_name("set_clock.c"), folder / "set_clock.so"
    subprocess.run([compiler, "-shared", "-fPIC", "-O", "-o", library, source, "-ldl"], check=True)
    return Clocks(folder, library)


@pytest.fixture(scope="module")
def cluster(clocks: Clocks) -> Iterator[Cluster]:
    with pytest.MonkeyPatch.context() as environment:
        for name, value in clocks.environment("server").items():
            environment.setenv(name, value)
        cluster = Cluster(workers=2, beats=2)
    cluster.environment.update(clocks.environment("others"))
    try:
        cluster.start()
        workload.prepare(cluster)
        cluster.node.wanted = True
        cluster.start()
        until(lambda: is_ready(cluster), "the kubelet's node")
        cluster.node.scale(2)
        cluster.settle(30)
        yield cluster
    finally:
        cluster.stop()


def seconds_off(cluster: Cluster, clocks: Clocks) -> tuple[int, int]:
    """How far off the server's and the others' clocks are, to the minute."""
    command = [sys.executable, "-c", "import time; print(time.time())"]
    environment = {**os.environ, **clocks.environment("others")}
    said = subprocess.run(command, env=environment, capture_output=True, check=True, text=True)
    answer: Any = cluster.io.execute("TIME")
    now = time.time()
    return round((int(answer[0]) - now) / 60) * 60, round((float(said.stdout) - now) / 60) * 60


def last_pass(cluster: Cluster) -> Any:
    """When the last pass over all nodes began."""
    return cluster.io.execute("HGET", cluster.io.keys.tick_state(MONITOR), ".began")


def is_ready(cluster: Cluster) -> bool:
    try:
        node = cluster.store.get(Node.resource, NODE)
    except NotFound:
        return False
    assert isinstance(node, Node)
    return [c.status for c in node.status.conditions or () if c.type == "Ready"] == ["True"]


def wait_for_pass(cluster: Cluster) -> None:
    """Waits until another pass over the nodes has ended."""
    last = last_pass(cluster)
    until(lambda: last_pass(cluster) != last, "a pass over the nodes", RECOVERY)


@pytest.mark.chaos
@pytest.mark.parametrize("step", [HOUR, -HOUR])
@pytest.mark.parametrize("whose", [("server",), ("others",), ("server", "others")], ids="+".join)
def test_the_world_is_exact_after_a_clock_was_set(
    cluster: Cluster, clocks: Clocks, whose: tuple[str, ...], step: int
) -> None:
    rng = random.Random(41)
    workload.stir(cluster, rng)
    clocks.set(step, *whose)
    off = seconds_off(cluster, clocks)
    assert off == (step * ("server" in whose), step * ("others" in whose))
    faults.kill_a_worker(cluster, rng)
    workload.stir(cluster, rng)
    for _ in range(2):
        wait_for_pass(cluster)
    cluster.settle()
    assert is_ready(cluster)
    workload.stir(cluster, rng)
    clocks.set(0, *whose)
    workload.stir(cluster, rng)
    cluster.settle()
