"""Active deadlines: pods that may run only so long.

Source: pkg/kubelet/active_deadline.go, Kubernetes 1.33.
"""

from __future__ import annotations

from datetime import datetime

from kcm.api.core_v1 import Pod, PodStatus

REASON = "DeadlineExceeded"
MESSAGE = "Pod was active on the node longer than the specified deadline"


def is_past(pod: Pod, status: PodStatus, now: datetime) -> bool:
    """Whether its time is over."""
    seconds = pod.spec.active_deadline_seconds
    if seconds is None or status.start_time is None:
        return False
    return (now - status.start_time).total_seconds() >= seconds
