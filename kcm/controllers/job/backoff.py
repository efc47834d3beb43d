"""How long the replacement of a failed pod waits.

Upstream keeps the record of failures in memory and loses it at a restart. Here the failures are
read from the pods that still exist, whoever looks.

Source: pkg/controller/job/backoff_utils.go, Kubernetes 1.33.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from kcm.api.batch_v1 import Job
from kcm.api.core_v1 import Pod
from kcm.controllers.job.pods import (
    all_index_failures,
    finished_at,
    has_succeeded,
    is_failed,
    is_tracked,
)

FIRST = 10.0  # seconds after the first failure, doubled by each further one
LONGEST = 600.0  # seconds


def wait_for_any(job: Job, pods: Iterable[Pod], now: datetime) -> float:
    """Returns the seconds until the Job may have a new pod. Failures since its last
    success count.
    """
    all_pods = list(pods)
    successes = [finished_at(pod) for pod in all_pods if has_succeeded(pod)]
    last = max(successes, default=None)
    failures = [
        moment
        for pod in all_pods
        if _has_failed(pod, job) and ((moment := finished_at(pod)) and (not last or moment > last))
    ]
    return _left(len(failures), max(failures, default=now), now)


def _has_failed(pod: Pod, job: Job) -> bool:
    # A pod that the Job itself deleted, to suspend it or to scale down, lost the finalizer first.
    return is_failed(pod, job) and (is_tracked(pod) or not pod.deleting)


def wait_for_index(last_failed: Pod | None, now: datetime) -> float:
    """Returns the seconds until the index of this pod, if there was one, may have a new pod."""
    if last_failed is None:
        return 0.0
    return _left(all_index_failures(last_failed) + 1, finished_at(last_failed), now)


def _left(failures: int, last: datetime, now: datetime) -> float:
    if not failures:
        return 0.0
    # The exponent is bounded, so that a count from an annotation cannot grow the number.
    delay = min(FIRST * 2.0 ** min(failures - 1, 16), LONGEST)
    return max(0.0, delay - (now - last).total_seconds())
