"""Every process in turn is stopped for half a minute, or killed again and again."""

from __future__ import annotations

import random
import signal
from collections.abc import Sequence

import psutil
import pytest

from kcm.testing.waiting import let_time_pass, until
from tests.chaos import workload
from tests.chaos.cluster import Cluster

STOPPED = 30.0  # seconds: longer than any lease, and than a sync may take
SORTS = ("worker", "pool child", "manager", "beat", "server")


def one_of(cluster: Cluster, sort: str) -> psutil.Process:
    server = cluster.server.process
    assert server is not None
    processes: dict[str, Sequence[psutil.Process]] = {
        "worker": cluster.workers,
        "pool child": cluster.children(),
        "manager": cluster.managers(),
        "beat": cluster.beats,
        "server": [psutil.Process(server.pid)],
    }
    return processes[sort][0]


@pytest.mark.chaos
@pytest.mark.parametrize("sort", SORTS)
def test_the_world_is_exact_after_one_was_stopped(cluster: Cluster, sort: str) -> None:
    rng = random.Random(21)
    workload.stir(cluster, rng)
    process = one_of(cluster, sort)
    process.send_signal(signal.SIGSTOP)
    if sort != "server":
        workload.stir(cluster, rng)
    let_time_pass(STOPPED, "the process stands still")
    if process.is_running():
        process.send_signal(signal.SIGCONT)
    workload.stir(cluster, rng)
    cluster.settle()


@pytest.mark.chaos
@pytest.mark.parametrize("sort", SORTS)
def test_the_world_is_exact_after_one_was_killed_ten_times(cluster: Cluster, sort: str) -> None:
    rng = random.Random(22)
    for _ in range(10):
        workload.stir(cluster, rng, steps=3)
        if sort == "server":
            cluster.wait_until_saved()
            cluster.restart_server()
        else:
            process = one_of(cluster, sort)
            process.kill()
            psutil.wait_procs([process], timeout=5)
            cluster.start()
            if sort in ("pool child", "manager"):
                until(lambda: cluster.children() and cluster.managers(), "its successor")
    cluster.settle()
