"""Computes how long the replacement of a failed pod is delayed.

Departure: upstream records failures in memory and loses them at a restart. Here they are read from
the pods that still exist, so every process computes the same delay.

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

FIRST = 10.0  # seconds after the first failure; each further failure doubles them
LONGEST = 600.0  # seconds


def wait_for_any(job: Job, pods: Iterable[Pod], now: datetime) -> float:
    """Returns the seconds until the Job may create a pod, 0 if it may now.

    They depend on the failures since the last success.
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
    # A pod that this controller deletes to suspend or scale down a Job loses its finalizer first.
    return is_failed(pod, job) and (is_tracked(pod) or not pod.deleting)


def wait_for_index(last_failed: Pod | None, now: datetime) -> float:
    """Returns the seconds until an index may have a new pod, 0 if it may now.

    `last_failed` is the index's pod that failed last, None if none has.
    """
    if last_failed is None:
        return 0.0
    return _left(all_index_failures(last_failed) + 1, finished_at(last_failed), now)


def _left(failures: int, last: datetime, now: datetime) -> float:
    if not failures:
        return 0.0
    # The exponent is bounded, so that a count from an annotation cannot grow the number.
    delay = min(FIRST * 2.0 ** min(failures - 1, 16), LONGEST)
    return max(0.0, delay - (now - last).total_seconds())
