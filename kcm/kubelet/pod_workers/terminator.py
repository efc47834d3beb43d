"""Ending a pod against its will, and waiting for that: its phase becomes Failed.

Source: killPodNow in pkg/kubelet/pod_workers.go, Kubernetes 1.33.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from kcm.api.core_v1 import Pod, PodCondition, PodStatus
from kcm.clock import Clock
from kcm.kubelet.pod_workers.pod_sync_status import KillPodOptions, UpdatePodOptions
from kcm.kubelet.recorder import Recorder
from kcm.kubelet.types import SyncPodType


@dataclass(frozen=True)
class Ending:
    """Why a pod ends, and how soon (seconds)."""

    reason: str
    message: str
    grace: int
    evict: bool = False


class Terminator:
    """`update_pod` is the pod workers'. Thread-safe."""

    def __init__(
        self, update_pod: Callable[[UpdatePodOptions], None], recorder: Recorder, clock: Clock
    ) -> None:
        self._update_pod = update_pod
        self._recorder = recorder
        self._clock = clock

    def end(self, pod: Pod, ending: Ending) -> threading.Event:
        """Have the pod end; the event is set when its containers have ended."""
        done = threading.Event()
        kill = KillPodOptions(
            completed=done.set,
            evict=ending.evict,
            status=lambda status: failed(status, ending, self._clock),
            grace_seconds=ending.grace,
        )
        self._update_pod(UpdatePodOptions(SyncPodType.KILL, pod=pod, kill=kill))
        return done

    def end_and_wait(self, pod: Pod, ending: Ending, patience: float) -> bool:
        """As `end`; False when it takes more than `patience` seconds."""
        if self._clock.wait(self.end(pod, ending), patience):
            return True
        text = "Container runtime did not kill the pod within specified grace period."
        self._recorder.of_pod(pod, "Warning", "ExceededGracePeriod", text)
        return False


def failed(status: PodStatus, ending: Ending, clock: Clock) -> PodStatus:
    """The status of a pod that is ended so."""
    condition = PodCondition(
        type="DisruptionTarget",
        status="True",
        reason="TerminationByKubelet",
        message=ending.message,
        last_transition_time=clock.now().replace(microsecond=0),
    )
    others: Sequence[PodCondition] = [
        one for one in status.conditions or () if one.type != condition.type
    ]
    return status.replace(
        phase="Failed",
        reason=ending.reason,
        message=ending.message,
        conditions=[*others, condition],
    )
