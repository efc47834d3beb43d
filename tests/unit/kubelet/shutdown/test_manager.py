"""Graceful shutdown of a node."""

from __future__ import annotations

import pytest

from kcm.api.core_v1 import Pod, PodStatus
from kcm.errors import ConfigurationError
from kcm.kubelet.pod_workers.pod_sync_status import UpdatePodOptions
from kcm.kubelet.pod_workers.terminator import Terminator
from kcm.kubelet.recorder import Recorder
from kcm.kubelet.shutdown.manager import (
    NOT_READY,
    REFUSED,
    Group,
    ShutdownManager,
    grouped,
    groups_of,
)
from kcm.reconcile.plan import Event
from kcm.testing import builders
from kcm.testing.clock import FakeClock

CRITICAL = 2_000_000_000


@pytest.mark.parametrize(
    ("seconds", "critical", "expected"),
    [
        (0, 0, []),
        (30, 10, [Group(0, 20), Group(CRITICAL, 10)]),
        (30, 0, [Group(0, 30), Group(CRITICAL, 0)]),
    ],
)
def test_critical_pods_have_the_last_part_of_the_time(
    seconds: float, critical: float, expected: list[Group]
) -> None:
    assert groups_of(seconds, critical) == expected


def test_critical_pods_cannot_have_more_than_all() -> None:
    with pytest.raises(ConfigurationError):
        groups_of(10, 20)


def test_pods_go_by_priority() -> None:
    priorities = {"none": None, "low": -5, "high": 1000, "critical": CRITICAL, "top": CRITICAL + 1}
    pods = [builders.pod(name, priority=priority) for name, priority in priorities.items()]
    found = grouped(groups_of(30, 10), pods)
    assert [[pod.name for pod in group.pods] for group in found] == [
        ["none", "low", "high"], ["critical", "top"],
    ]  # fmt: skip


class Node:
    """A node whose pods end at once, or never."""

    def __init__(self, *pods: Pod, seconds: float = 30, ends: bool = True) -> None:
        self.killed: list[tuple[str, int | None, float]] = []
        self.status: PodStatus | None = None
        self.ends = ends
        self.events: list[Event] = []
        self.reports = 0
        self.clock = FakeClock()
        recorder = Recorder(self, "n1")
        self.manager = ShutdownManager(
            groups_of(seconds, seconds / 3), lambda: list(pods),
            Terminator(self._kill, recorder, self.clock), recorder=recorder, clock=self.clock,
            report=self._report,
        )  # fmt: skip

    def record(self, event: Event, component: str, host: str = "") -> None:
        self.events.append(event)

    def _report(self) -> None:
        self.reports += 1

    def _kill(self, options: UpdatePodOptions) -> None:
        kill, pod = options.kill, options.pod
        assert kill is not None
        assert kill.status is not None
        assert kill.completed is not None
        assert pod is not None
        self.killed.append((pod.name or "", kill.grace_seconds, self.clock.monotonic()))
        self.status = kill.status(PodStatus(phase="Running"))
        if self.ends:
            kill.completed()


def test_pods_end_critical_ones_last_and_say_why() -> None:
    node = Node(
        builders.pod("critical", priority=CRITICAL, termination_grace_period_seconds=100),
        builders.pod("quick", termination_grace_period_seconds=3),
        builders.pod("slow", termination_grace_period_seconds=100),
    )
    node.manager.shut_down()
    assert node.killed == [("quick", 3, 0.0), ("slow", 20, 0.0), ("critical", 10, 0.0)]
    assert node.status is not None
    assert (node.status.phase, node.status.reason, node.status.message) == (
        "Failed", "Terminated", "Pod was terminated in response to imminent node shutdown.",
    )  # fmt: skip
    assert [(event.reason, event.message) for event in node.events] == [
        ("NodeShutdown", "Shutdown manager detected shutdown event")
    ]


def test_pods_that_do_not_end_are_waited_for_no_longer_than_their_group_has() -> None:
    node = Node(
        builders.pod("a"), builders.pod("b"), builders.pod("c", priority=CRITICAL), ends=False
    )
    node.manager.shut_down()
    assert [at for _, _, at in node.killed] == [0.0, 0.0, 20.0]
    assert node.clock.monotonic() == 30.0


def test_a_node_that_shuts_down_is_not_ready_and_takes_no_pods() -> None:
    node = Node()
    assert (node.manager.faults(), node.manager.admit(builders.pod(), [])) == ([], None)
    node.manager.shut_down()
    assert node.manager.faults() == [NOT_READY]
    assert node.manager.admit(builders.pod(), []) is REFUSED
    assert node.reports == 1


def test_without_a_time_pods_run_on() -> None:
    node = Node(builders.pod(), seconds=0)
    node.manager.shut_down()
    assert (node.killed, node.events, node.manager.faults()) == ([], [], [])
