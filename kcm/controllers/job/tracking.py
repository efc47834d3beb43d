"""Counts pods that have ended, each exactly once, even after failures and crashes.

Invariant: a pod has the finalizer until a status with its uid (or its index) has been written. It
is in a counter or in `uncountedTerminatedPods`, but never in both. There are three writes, in this
order: the status with the uids of pods that ended, the removals of their finalizers, and the status
with these pods in the counters. After a crash between two of them the next sync continues: a uid in
the status whose pod is gone or has no finalizer is added to the counter.

Source: trackJobStatusAndRemoveFinalizers in pkg/controller/job/job_controller.go, Kubernetes 1.33.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from kcm.api.batch_v1 import JobStatus, UncountedTerminatedPods
from kcm.api.core_v1 import Pod
from kcm.controllers.job.conditions import SUCCESS_CRITERIA_MET
from kcm.controllers.job.pods import (
    has_succeeded,
    index_of,
    is_failed,
    is_indexed,
    is_tracked,
    valid_index,
)
from kcm.controllers.job.policies import judge_failure
from kcm.controllers.job.state import JobState

MOST_UNCOUNTED = 500  # the most uids and indexes that one sync adds; 500 uids take some 20 KB


@dataclass
class Tracking:
    """The status to write first, and the pods whose finalizers are removed after it."""

    status: JobStatus
    removals: list[Pod] = field(default_factory=list)
    tracked: frozenset[str] = frozenset()  # uids of pods that had the finalizer before
    is_full: bool = False  # whether more pods have ended than one sync counts

    def after(self, removed: Iterable[str]) -> JobStatus:
        """Returns the status after these pods, given by uid, have lost the finalizer."""
        return settle_uncounted(self.status, self.tracked - set(removed))


def track_ended_pods(state: JobState, status: JobStatus) -> Tracking:
    """Returns which pods are counted now. `status` is the present one, with its start time."""
    tracked = frozenset(pod.uid for pod in state.pods if is_tracked(pod))
    result = Tracking(settle_uncounted(status, tracked), tracked=tracked)
    _Counter(state, result).run()
    return result


def settle_uncounted(status: JobStatus, tracked: frozenset[str]) -> JobStatus:
    """Returns the status with the uncounted pods that are not in `tracked` added to its
    counters.
    """
    uncounted = status.uncounted_terminated_pods or UncountedTerminatedPods()
    succeeded = [uid for uid in uncounted.succeeded or () if uid in tracked]
    failed = [uid for uid in uncounted.failed or () if uid in tracked]
    more = len(uncounted.succeeded or ()) - len(succeeded)
    more_failed = len(uncounted.failed or ()) - len(failed)
    return status.replace(
        succeeded=(status.succeeded or 0) + more or None,
        failed=(status.failed or 0) + more_failed or None,
        uncounted_terminated_pods=UncountedTerminatedPods(
            succeeded=succeeded or None, failed=failed or None
        ),
    )


class _Counter:
    """Adds ended pods to the status, in the order of their indexes if they have any."""

    def __init__(self, state: JobState, tracking: Tracking) -> None:
        uncounted = tracking.status.uncounted_terminated_pods or UncountedTerminatedPods()
        self._state = state
        self._tracking = tracking
        self._succeeded = list(uncounted.succeeded or ())
        self._failed = list(uncounted.failed or ())
        # The uids in the status when the sync began.
        self._counted = set(self._succeeded) | set(self._failed)
        self._new_indexes: set[int] = set()

    def run(self) -> None:
        state, tracking = self._state, self._tracking
        for pod in self._pods():
            if not is_tracked(pod) or not self._may_go(pod):
                continue
            tracking.removals.append(pod)
            self._count(pod)
            if self._size() >= MOST_UNCOUNTED:
                tracking.is_full = True
                break
        tracking.status = tracking.status.replace(
            uncounted_terminated_pods=UncountedTerminatedPods(
                succeeded=self._succeeded or None, failed=self._failed or None
            )
        )
        if is_indexed(state.job):
            tracking.status = self._with_indexes(tracking.status)

    def _size(self) -> int:
        return len(self._new_indexes) + len(self._succeeded) + len(self._failed)

    def _pods(self) -> Sequence[Pod]:
        pods = self._state.pods
        if not is_indexed(self._state.job):
            return pods
        return sorted(pods, key=lambda pod: -1 if (index := index_of(pod)) is None else index)

    def _may_go(self, pod: Pod) -> bool:
        """Reports whether the pod's finalizer may be removed, because the pod or the Job has ended.

        The last failed pod of an index is kept until its replacement has the number of failures.
        """
        state = self._state
        if state.job.deleting or state.finished is not None or has_succeeded(pod):
            return True
        if not is_failed(pod, state.job):
            return False
        index = index_of(pod)
        kept = state.last_failed.get(index) if index is not None else None
        return kept is None or kept.uid != pod.uid

    def _count(self, pod: Pod) -> None:
        job = self._state.job
        if has_succeeded(pod) and pod.uid not in self._failed:
            index = valid_index(pod, job)
            if not is_indexed(job):
                if pod.uid not in self._counted:
                    self._succeeded.append(pod.uid)
            elif index is not None and index not in self._state.counted_indexes:
                self._new_indexes.add(index)  # the index is enough to count it once
        elif self._counts_as_failed(pod) and pod.uid not in self._counted:
            self._failed.append(pod.uid)

    def _counts_as_failed(self, pod: Pod) -> bool:
        """Reports whether the pod has failed, or is ended because the Job fails.

        A failure that the podFailurePolicy ignores does not count.
        """
        job, finished = self._state.job, self._state.finished
        ended = finished is not None and finished.type != SUCCESS_CRITERIA_MET
        if not is_failed(pod, job) and not ended:
            return False
        if is_indexed(job) and valid_index(pod, job) is None:
            return False
        return judge_failure(job, pod).counts

    def _with_indexes(self, status: JobStatus) -> JobStatus:
        succeeded = self._state.succeeded_indexes.with_indexes(sorted(self._new_indexes))
        failed = self._state.failed_indexes
        return status.replace(
            succeeded=len(succeeded) or None,
            completed_indexes=str(succeeded) or None,
            failed_indexes=None if failed is None else str(failed),
        )
