"""The eviction manager, with usage that tests set."""

from __future__ import annotations

import threading
from dataclasses import replace
from datetime import UTC, datetime
from typing import cast

import pytest

from kcm.api.core_v1 import NodeStatus, Pod, PodStatus, ResourceRequirements, Toleration
from kcm.apimachinery.quantity import Quantity
from kcm.kubelet.eviction.manager import EvictionManager, PressureState, advance_pressure
from kcm.kubelet.eviction.thresholds import (
    EvictionConfig,
    Observation,
    Signal,
    Threshold,
    ThresholdValue,
    parse_thresholds,
)
from kcm.kubelet.pod_workers.pod_sync_status import UpdatePodOptions
from kcm.kubelet.pod_workers.terminator import Terminator
from kcm.kubelet.recorder import KubeletEventRecorder
from kcm.kubelet.stats.machine import MachineUsage
from kcm.kubelet.stats.provider import StatsProvider, StatsSummary
from kcm.reconcile.plan import Event
from kcm.testing import builders
from kcm.testing.clock import FakeClock

AT = datetime(2026, 1, 1, tzinfo=UTC)
GI = 2**30
MACHINE = MachineUsage(AT, 0, 10 * GI, 5 * GI, 100 * GI, 50 * GI, 1000, 500, 10, 1000)


class Node:
    """A node whose usage tests set."""

    def __init__(
        self,
        *pods: Pod,
        hard: str = "memory.available<1Gi",
        soft: str = "",
        grace: float = 30.0,
        most: int = 0,
    ) -> None:
        self.machine = MACHINE
        self.pods = list(pods)
        self.killed: list[UpdatePodOptions] = []
        self.events: list[Event] = []
        self.reports = 0
        self.clock = FakeClock()
        recorder = KubeletEventRecorder(self, "n1")
        graces = {"memory.available": grace} if soft else {}
        thresholds = parse_thresholds(hard, soft, graces, "")
        self.manager = EvictionManager(
            EvictionConfig(thresholds, 60.0, most),
            stats=cast("StatsProvider", self),  # provides the stats
            active_pods=lambda: self.pods,
            terminator=Terminator(self._kill, recorder, self.clock),
            recorder=recorder,
            clock=self.clock,
            request_node_report=self._report,
        )

    def summary(self, *, max_age: float) -> StatsSummary:
        return StatsSummary(self.machine, None, ())

    def record(self, event: Event, component: str, host: str = "") -> None:
        self.events.append(event)

    def _kill(self, options: UpdatePodOptions) -> None:
        self.killed.append(options)
        assert options.kill is not None
        assert options.kill.on_completed is not None
        options.kill.on_completed()

    def _report(self) -> None:
        self.reports += 1

    def leave_memory(self, gibibytes: float) -> bool:
        """Runs one check with that much memory available; returns whether a pod was evicted."""
        self.machine = replace(MACHINE, memory_available=int(gibibytes * GI))
        return self.manager.synchronize()

    def names(self) -> list[str]:
        return [options.pod.name or "" for options in self.killed if options.pod]


def test_nothing_happens_while_enough_is_left() -> None:
    node = Node(builders.pod())
    assert not node.leave_memory(1)
    assert (node.killed, node.events, node.reports) == ([], [], 0)


def test_one_pod_at_a_time_is_evicted_and_told_why() -> None:
    node = Node(builders.pod("a"), builders.pod("b", priority=5))
    assert node.leave_memory(0.5)
    assert node.names() == ["a"]
    options = node.killed[0]
    assert options.kill is not None
    assert options.kill.update_status is not None
    assert (options.kill.evict, options.kill.grace_seconds) == (True, 1)
    status = options.kill.update_status(PodStatus(phase="Running"))
    why = "The node was low on resource: memory. Threshold quantity: 1Gi, available: 512Mi. "
    assert (status.phase, status.reason, status.message) == ("Failed", "Evicted", why)
    assert status.conditions
    assert (status.conditions[0].type, status.conditions[0].reason) == (
        "DisruptionTarget", "TerminationByKubelet",
    )  # fmt: skip
    assert [event.reason for event in node.events] == ["EvictionThresholdMet", "Evicted"]
    assert node.events[0].message == "Attempting to reclaim memory"
    assert node.reports == 1


def test_critical_pods_stay() -> None:
    critical = builders.pod("critical", priority=2_000_000_000)
    static = builders.pod(
        "static", metadata={"annotations": {"kubernetes.io/config.source": "file"}}
    )
    node = Node(critical, static)
    assert not node.leave_memory(0.1)
    assert node.killed == []


@pytest.mark.parametrize(("own", "grace"), [(None, 20), (30, 20), (10, 10), (0, 1)])
def test_a_soft_threshold_waits_and_gives_time_to_end(own: int | None, grace: int) -> None:
    pod = builders.pod(termination_grace_period_seconds=own)
    node = Node(pod, soft="memory.available<3Gi", most=20)
    assert not node.leave_memory(2)
    node.clock.step(30)
    assert node.leave_memory(2)
    kill = node.killed[0].kill
    assert kill is not None
    assert kill.grace_seconds == grace


def test_where_the_one_disk_is_short_for_images_pods_go_for_their_volumes_and_logs() -> None:
    node = Node(builders.pod(), hard="nodefs.available<10%,imagefs.available<60%")
    assert node.manager.synchronize()
    assert node.manager.pressures == {"DiskPressure"}
    assert [event.message for event in node.events] == [
        "Attempting to reclaim ephemeral-storage",
        "The node was low on resource: ephemeral-storage. "
        "Threshold quantity: 60Gi, available: 50Gi. ",
    ]


def test_thresholds_of_containerfs_evict_nobody() -> None:
    node = Node(builders.pod(), hard="containerfs.available<99%,containerfs.inodesFree<99%")
    assert not node.manager.synchronize()
    assert node.manager.pressures == frozenset()


@pytest.mark.parametrize(
    ("requests", "tolerated", "priority", "admitted"),
    [
        (None, None, 0, False),
        ({"memory": Quantity("1Mi")}, None, 0, True),
        (None, "node.kubernetes.io/memory-pressure", 0, True),
        (None, "node.kubernetes.io/disk-pressure", 0, False),
        (None, None, 2_000_000_000, True),
    ],
)
def test_under_memory_pressure_best_effort_pods_are_not_taken(
    requests: dict[str, Quantity] | None, tolerated: str | None, priority: int, admitted: bool
) -> None:
    node = Node()
    tolerations = [Toleration(key=tolerated, operator="Exists")] if tolerated else None
    pod = builders.pod(
        containers=[builders.container(resources=ResourceRequirements(requests=requests))],
        tolerations=tolerations, priority=priority,
    )  # fmt: skip
    assert node.manager.admit(pod, []) is None
    node.leave_memory(0.5)
    refusal = node.manager.admit(pod, [])
    assert (refusal is None) is admitted
    if refusal is not None:
        assert (refusal.reason, refusal.message) == (
            "Evicted", "The node had condition: [MemoryPressure]. ",
        )  # fmt: skip


def test_pods_that_run_are_found_again_under_pressure() -> None:
    node = Node()
    node.leave_memory(0.5)
    assert node.manager.admit(builders.pod(phase="Running"), []) is None


def test_the_node_reports_pressure_until_the_transition_period_is_over() -> None:
    node = Node()

    def read_conditions() -> dict[str, tuple[str, str | None]]:
        conditions = node.manager.build_conditions(NodeStatus(), AT)
        return {one.type: (one.status, one.reason) for one in conditions}

    assert read_conditions()["MemoryPressure"] == ("False", "KubeletHasSufficientMemory")
    node.leave_memory(0.5)
    assert read_conditions() == {
        "MemoryPressure": ("True", "KubeletHasInsufficientMemory"),
        "DiskPressure": ("False", "KubeletHasNoDiskPressure"),
        "PIDPressure": ("False", "KubeletHasSufficientPID"),
    }
    node.clock.step(59)
    node.leave_memory(5)
    assert read_conditions()["MemoryPressure"][0] == "True"
    node.clock.step(2)
    node.leave_memory(5)
    assert read_conditions()["MemoryPressure"][0] == "False"
    assert node.reports == 2


def test_looking_ends_with_the_kubelet() -> None:
    stop = threading.Event()
    stop.set()
    node = Node()
    node.manager.run(stop)
    assert node.clock.monotonic() == FakeClock().monotonic()  # it has waited for nothing


# --- The change of PressureState over time.


HARD = Threshold(
    Signal.MEMORY, ThresholdValue(Quantity(100)), min_reclaim=ThresholdValue(Quantity(50))
)
SOFT = Threshold(Signal.DISK, ThresholdValue(Quantity(200)), grace_period=30.0)
TRANSITION = 60.0


def run(*looks: tuple[float, int, int]) -> list[tuple[list[Signal], set[str]]]:
    """Returns the acting signals and the conditions after each observation.

    An observation is a tuple of the time, the memory and the disk that are left.
    """
    pressure, rounds = PressureState(), []
    for now, memory, disk in looks:
        observed = {
            Signal.MEMORY: Observation(memory, 1000),
            Signal.DISK: Observation(disk, 1000),
        }
        pressure = advance_pressure(
            pressure, [HARD, SOFT], observed, now=now, transition_period=TRANSITION
        )
        rounds.append(([one.signal for one in pressure.acting], set(pressure.conditions)))
    return rounds


def test_a_hard_threshold_acts_at_once_until_enough_is_reclaimed() -> None:
    assert run((0, 99, 999), (10, 120, 999), (20, 150, 999)) == [
        ([Signal.MEMORY], {"MemoryPressure"}),
        ([Signal.MEMORY], {"MemoryPressure"}),
        ([], {"MemoryPressure"}),
    ]


def test_a_soft_threshold_acts_after_its_grace() -> None:
    assert [acting for acting, _ in run((0, 999, 1), (29, 999, 1), (30, 999, 1))] == [
        [], [], [Signal.DISK],
    ]  # fmt: skip


def test_a_soft_threshold_that_was_left_meanwhile_begins_anew() -> None:
    looks = ((0, 999, 1), (20, 999, 500), (30, 999, 1), (59, 999, 1), (60, 999, 1))
    assert [bool(acting) for acting, _ in run(*looks)] == [False, False, False, False, True]


def test_a_condition_stays_for_the_transition_period() -> None:
    assert [kinds for _, kinds in run((0, 99, 999), (59, 999, 999), (61, 999, 999))] == [
        {"MemoryPressure"}, {"MemoryPressure"}, set(),
    ]  # fmt: skip
    # It is counted from the last time that it was seen.
    kinds = [kinds for _, kinds in run((0, 99, 1), (50, 99, 999), (100, 999, 999))]
    assert kinds == [{"MemoryPressure", "DiskPressure"}] * 2 + [{"MemoryPressure"}]


def test_a_soft_threshold_is_a_condition_from_the_first() -> None:
    assert run((0, 999, 1)) == [([], {"DiskPressure"})]
