"""Graceful shutdown of a node."""

from __future__ import annotations

from kcm.api.core_v1 import Pod, PodStatus
from kcm.kubelet.pod_workers.pod_sync_status import UpdatePodOptions
from kcm.kubelet.pod_workers.terminator import Terminator
from kcm.kubelet.recorder import KubeletEventRecorder
from kcm.kubelet.shutdown.grace_periods import split_grace_period
from kcm.kubelet.shutdown.manager import NOT_READY, REJECTION, ShutdownManager
from kcm.reconcile.plan import Event
from kcm.testing import builders
from kcm.testing.clock import FakeClock

CRITICAL = 2_000_000_000


class Node:
    """A node whose pods end at once, or never."""

    def __init__(self, *pods: Pod, seconds: float = 30, ends: bool = True) -> None:
        self.killed: list[tuple[str, int | None, float]] = []
        self.status: PodStatus | None = None
        self.ends = ends
        self.events: list[Event] = []
        self.reports = 0
        self.clock = FakeClock()
        recorder = KubeletEventRecorder(self, "n1")
        self.manager = ShutdownManager(
            split_grace_period(seconds, seconds / 3), lambda: list(pods),
            Terminator(self._kill, recorder, self.clock), recorder=recorder, clock=self.clock,
            request_node_report=self._report,
        )  # fmt: skip

    def record(self, event: Event, component: str, host: str = "") -> None:
        self.events.append(event)

    def _report(self) -> None:
        self.reports += 1

    def _kill(self, options: UpdatePodOptions) -> None:
        kill, pod = options.kill, options.pod
        assert kill is not None
        assert kill.update_status is not None
        assert kill.on_completed is not None
        assert pod is not None
        self.killed.append((pod.name or "", kill.grace_seconds, self.clock.monotonic()))
        self.status = kill.update_status(PodStatus(phase="Running"))
        if self.ends:
            kill.on_completed()


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
    assert (node.manager.readiness_errors(), node.manager.admit(builders.pod(), [])) == ([], None)
    node.manager.shut_down()
    assert node.manager.readiness_errors() == [NOT_READY]
    assert node.manager.admit(builders.pod(), []) is REJECTION
    assert node.reports == 1


def test_without_a_time_pods_run_on() -> None:
    node = Node(builders.pod(), seconds=0)
    assert not node.manager.shut_down()
    assert (node.killed, node.events, node.manager.readiness_errors()) == ([], [], [])
