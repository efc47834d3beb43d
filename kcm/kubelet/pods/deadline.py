"""Active deadlines: pods that may run only so long.

Source: pkg/kubelet/active_deadline.go, Kubernetes 1.33.
"""

from __future__ import annotations

from datetime import datetime

from kcm.api.core_v1 import Pod
from kcm.apimachinery.times import shifted

REASON = "DeadlineExceeded"
MESSAGE = "Pod was active on the node longer than the specified deadline"


def of(pod: Pod, started: datetime | None) -> datetime | None:
    """When the time of a pod that started then is over; None for never."""
    seconds = pod.spec.active_deadline_seconds
    if seconds is None or started is None:
        return None
    return shifted(started, seconds)


def is_past(pod: Pod, started: datetime | None, now: datetime) -> bool:
    """Whether its time is over."""
    end = of(pod, started)
    return end is not None and now >= end
