"""Terminates pods at the node's own decision, for evictions and shutdowns. Their phase is Failed.

Source: killPodNow in pkg/kubelet/pod_workers.go, Kubernetes 1.33.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass

from kcm.api.core_v1 import Pod, PodCondition, PodStatus
from kcm.clock import Clock
from kcm.kubelet.pod_workers.pod_sync_status import KillPodOptions, UpdatePodOptions
from kcm.kubelet.recorder import KubeletEventRecorder
from kcm.kubelet.types import SyncPodType


@dataclass(frozen=True)
class PodTermination:
    """Why the node terminates a pod, and with which grace period in seconds."""

    reason: str
    message: str
    grace_seconds: int
    evict: bool = False


class Terminator:
    """Makes the pod workers kill pods. Thread-safe."""

    def __init__(
        self,
        update_pod: Callable[[UpdatePodOptions], None],
        recorder: KubeletEventRecorder,
        clock: Clock,
    ) -> None:
        """`update_pod` is `PodWorkers.update_pod`."""
        self._update_pod = update_pod
        self._recorder = recorder
        self._clock = clock

    def terminate(self, pod: Pod, termination: PodTermination) -> threading.Event:
        """Begins to terminate the pod. The returned event is set when its containers have ended."""
        ended = threading.Event()
        kill = KillPodOptions(
            on_completed=ended.set,
            evict=termination.evict,
            update_status=lambda status: build_failed_status(status, termination, self._clock),
            grace_seconds=termination.grace_seconds,
        )
        self._update_pod(UpdatePodOptions(SyncPodType.KILL, pod=pod, kill=kill))
        return ended

    def terminate_and_wait(self, pod: Pod, termination: PodTermination, timeout: float) -> bool:
        """Terminates the pod. Returns False if it has not ended after `timeout` seconds."""
        if self._clock.wait(self.terminate(pod, termination), timeout):
            return True
        text = "Container runtime did not kill the pod within specified grace period."
        self._recorder.record_pod_event(pod, "Warning", "ExceededGracePeriod", text)
        return False


def build_failed_status(status: PodStatus, termination: PodTermination, clock: Clock) -> PodStatus:
    """Returns the pod status with the phase Failed and the reason of the termination."""
    target = PodCondition(
        type="DisruptionTarget",
        status="True",
        reason="TerminationByKubelet",
        message=termination.message,
        last_transition_time=clock.now().replace(microsecond=0),
        observed_generation=status.observed_generation,
    )
    others = [condition for condition in status.conditions or () if condition.type != target.type]
    return status.replace(
        phase="Failed",
        reason=termination.reason,
        message=termination.message,
        conditions=[*others, target],
    )
