"""The shutdown manager: terminates all pods of the node by priority before the kubelet stops.

Guarantees: once the shutdown has begun, no pod is admitted and the node reports that it is not
ready. Critical pods are terminated last, with a grace period of their own.

Source: pkg/kubelet/nodeshutdown/nodeshutdown_manager_linux.go, Kubernetes 1.33. Departure: the
kubelet's SIGTERM begins the shutdown, not a message of systemd.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

import structlog

from kcm.api.core_v1 import Pod
from kcm.clock import Clock
from kcm.kubelet.admission import Rejection
from kcm.kubelet.pod_workers.terminator import PodTermination, Terminator
from kcm.kubelet.recorder import KubeletEventRecorder
from kcm.kubelet.shutdown.grace_periods import (
    PodShutdownGroup,
    ShutdownGracePeriod,
    group_by_priority,
)

log = structlog.get_logger("kcm.kubelet")

REASON = "Terminated"
MESSAGE = "Pod was terminated in response to imminent node shutdown."
REJECTION = Rejection("NodeShutdown", "Pod was rejected as the node is shutting down.")
NOT_READY = "node is shutting down"


class ShutdownManager:
    """Terminates the node's pods when `shut_down` is called. Thread-safe."""

    def __init__(
        self,
        periods: Sequence[ShutdownGracePeriod],
        active_pods: Callable[[], Sequence[Pod]],
        terminator: Terminator,
        *,
        recorder: KubeletEventRecorder,
        clock: Clock,
        request_node_report: Callable[[], None] = lambda: None,
    ) -> None:
        """`request_node_report` makes the node manager report the node status at once."""
        self._periods = periods
        self._active_pods = active_pods
        self._terminator = terminator
        self._recorder = recorder
        self._clock = clock
        self._request_node_report = request_node_report
        self._shutting_down = False

    def readiness_errors(self) -> list[str]:
        """Returns [NOT_READY] if the shutdown has begun, else []."""
        return [NOT_READY] if self._shutting_down else []

    def admit(self, _: Pod, __: Sequence[Pod]) -> Rejection | None:
        """Rejects every pod once the shutdown has begun."""
        return REJECTION if self._shutting_down else None

    def shut_down(self) -> bool:
        """Terminates all pods; returns when they have ended or their grace periods are over.

        Returns False, and terminates none, if no grace period is configured.
        """
        if not self._periods:
            return False
        self._recorder.record_node_event(
            "Normal", "NodeShutdown", "Shutdown manager detected shutdown event"
        )
        self._shutting_down = True
        self._request_node_report()
        for group in group_by_priority(self._periods, self._active_pods()):
            if group.pods:
                self._terminate_group(group)
        return True

    def _terminate_group(self, group: PodShutdownGroup) -> None:
        seconds = group.period.seconds
        deadline = self._clock.monotonic() + seconds
        log.info("Shutdown manager: killing pods", pods=len(group.pods), seconds=seconds)
        terminating = [(pod, self._begin_termination(pod, seconds)) for pod in group.pods]
        for pod, ended in terminating:
            if not self._clock.wait(ended, max(deadline - self._clock.monotonic(), 0.0)):
                log.warning("Shutdown manager pod killing time out", pod=pod.key)

    def _begin_termination(self, pod: Pod, seconds: int) -> threading.Event:
        own = pod.spec.termination_grace_period_seconds
        grace = seconds if own is None else min(own, seconds)
        return self._terminator.terminate(pod, PodTermination(REASON, MESSAGE, grace))
