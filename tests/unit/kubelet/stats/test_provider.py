"""Usage from two measurements."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import cast

from kcm import errors
from kcm.kubelet.cri import (
    ContainerConfig,
    ContainerStats,
    Runtime,
    RuntimeContainer,
    RuntimeContainerState,
    RuntimeContainerStatus,
)
from kcm.kubelet.kuberuntime import labels
from kcm.kubelet.stats.provider import MAX_AGE, StatsProvider
from kcm.testing import builders
from kcm.testing.clock import FakeClock

AT = datetime(2026, 1, 1, tzinfo=UTC)
POD = builders.pod("web")


class Usage:
    """A runtime with one container, of which only the usage matters."""

    def __init__(self, clock: FakeClock) -> None:
        self.clock = clock
        self.cpu = 0
        self.gone = False
        self.looks = 0
        running = RuntimeContainerState.RUNNING
        own = {labels.POD_UID: POD.uid or ""}
        self.listed = [
            RuntimeContainer("1", "s", "main", 0, "", running, AT, own),
            RuntimeContainer("2", "s", "done", 0, "", RuntimeContainerState.EXITED, AT, own),
        ]

    def list_containers(self) -> list[RuntimeContainer]:
        self.looks += 1
        return self.listed

    def container_stats(self, container: str) -> ContainerStats:
        if self.gone:
            raise errors.ContainerNotFound()
        return ContainerStats(container, self.clock.now(), self.cpu, 100, 200, 3)

    def container_status(self, container: str) -> RuntimeContainerStatus:
        config = ContainerConfig("main")
        return RuntimeContainerStatus(container, config, RuntimeContainerState.RUNNING, AT, AT)


def provider(root: Path) -> tuple[StatsProvider, Usage, FakeClock]:
    clock = FakeClock()
    usage = Usage(clock)
    stats_provider = StatsProvider(
        cast("Runtime", usage),  # what is asked of it
        lambda: [POD],
        root_dir=root,
        pods_dir=root,
        clock=clock,
    )
    return stats_provider, usage, clock


def test_cpu_per_second_follows_from_two_looks(tmp_path: Path) -> None:
    stats, usage, clock = provider(tmp_path)
    first = stats.summary().pod(POD.uid)
    assert first is not None
    assert [one.name for one in first.containers] == ["main"]
    assert (first.cores, first.memory, first.processes) == (None, 100, 3)
    clock.step(10)
    usage.cpu = 5 * 10**9
    summary = stats.summary()
    second = summary.pod(POD.uid)
    assert second is not None
    assert (second.cores, second.cpu, summary.window) == (0.5, 5 * 10**9, 10.0)
    # A process that has ended may take its time with it.
    clock.step(10)
    usage.cpu = 0
    third = stats.summary().pod(POD.uid)
    assert third is not None
    assert third.cores == 0.0


def test_many_who_ask_get_one_look(tmp_path: Path) -> None:
    stats, usage, clock = provider(tmp_path)
    for _ in range(5):
        stats.summary()
    assert usage.looks == 1
    clock.step(MAX_AGE + 0.1)
    stats.summary()
    assert usage.looks == 2


def test_a_container_that_has_just_ended_is_left_out(tmp_path: Path) -> None:
    stats, usage, _ = provider(tmp_path)
    usage.gone = True
    pod_stats = stats.summary().pod(POD.uid)
    assert pod_stats is not None
    assert pod_stats.containers == ()


def test_a_pods_volumes_are_measured_now_and_then(tmp_path: Path) -> None:
    stats, _, clock = provider(tmp_path)
    volume = tmp_path / (POD.uid or "") / "volumes" / "empty-dir" / "data"
    volume.mkdir(parents=True)
    (volume / "file").write_bytes(b"x" * 10_000)

    def size() -> int:
        pod_stats = stats.summary().pod(POD.uid)
        assert pod_stats is not None
        return pod_stats.disk.volumes["data"]

    first = size()
    assert first >= 10_000
    (volume / "more").write_bytes(b"x" * 50_000)
    clock.step(10)
    assert size() == first
    clock.step(60)
    assert size() >= 60_000


def test_a_pod_that_nobody_knows_has_no_figures(tmp_path: Path) -> None:
    stats, _, _ = provider(tmp_path)
    assert stats.summary().pod("nobody") is None
    assert replace(stats.summary(), pods=()).pod(POD.uid) is None
