"""Active deadlines: the time after which a pod fails even if its containers still run.

Source: pkg/kubelet/active_deadline.go, Kubernetes 1.33.
"""

from __future__ import annotations

from datetime import datetime

from kcm.api.core_v1 import Pod
from kcm.apimachinery.meta_v1 import shift_time

REASON = "DeadlineExceeded"
MESSAGE = "Pod was active on the node longer than the specified deadline"


def deadline_of(pod: Pod, start_time: datetime | None) -> datetime | None:
    """Returns when a pod that started at `start_time` fails, or None if it has no deadline."""
    seconds = pod.spec.active_deadline_seconds
    if seconds is None or start_time is None:
        return None
    return shift_time(start_time, seconds)


def is_past(pod: Pod, start_time: datetime | None, now: datetime) -> bool:
    """Reports whether the pod has run longer than its active deadline allows."""
    deadline = deadline_of(pod, start_time)
    return deadline is not None and now >= deadline
