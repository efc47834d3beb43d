"""Computes the state of a Job from its pods and its status, before a sync plans any write.

The state has the numbers and indexes of the pods that have ended, and whether and how the Job is to
end.

Source: syncJob in pkg/controller/job/job_controller.go, pkg/controller/job/indexed_job_utils.go,
Kubernetes 1.33.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from kcm.api.batch_v1 import Job, JobCondition, condition_of
from kcm.api.core_v1 import Pod
from kcm.apimachinery.completion_indexes import Indexes
from kcm.controllers.job.conditions import (
    FAILURE_TARGET,
    SUCCESS_CRITERIA_MET,
    SUSPENDED,
    new_condition,
)
from kcm.controllers.job.pods import (
    all_index_failures,
    finished_at,
    has_limit_per_index,
    has_succeeded,
    index_failures,
    indexes_of,
    is_failed,
    is_indexed,
    is_tracked,
    valid_index,
)
from kcm.controllers.job.policies import judge_failure, success_message
from kcm.helpers.pods import is_active

_NO_INDEXES = Indexes()


@dataclass
class JobState:
    """The state of a Job and its pods at the time `now`."""

    job: Job
    pods: Sequence[Pod]  # all pods that the Job manages
    now: datetime
    started: datetime | None  # None while the Job is suspended and has never run
    active: list[Pod] = field(default_factory=list)
    succeeded: int = 0  # pods, of an Indexed Job indexes
    failed: int = 0
    counted_indexes: Indexes = _NO_INDEXES  # the completed indexes in the present status
    succeeded_indexes: Indexes = _NO_INDEXES
    failed_indexes: Indexes | None = None  # None without a limit per index
    # By index, the pod that failed last; its replacement gets the number of failures from it.
    last_failed: dict[int, Pod] = field(default_factory=dict)
    finished: JobCondition | None = None  # the interim condition, None if the Job goes on

    @property
    def completions(self) -> int:
        return self.job.spec.completions or 0

    @property
    def suspended(self) -> bool:
        return bool(self.job.spec.suspend)


def observe_job(job: Job, pods: Sequence[Pod], now: datetime) -> JobState:
    """Returns the state of a Job. `pods` are all pods that it controls."""
    started = job.status.start_time
    # The deadline limits the time that the Job is active without a break, so it counts from the
    # last resumption.
    resumes = condition_of(job, SUSPENDED) is not None
    if (started is None or resumes) and not job.spec.suspend:
        started = now.replace(microsecond=0)
    state = JobState(job, pods, now, started, [pod for pod in pods if is_active(pod)])
    _count(state)
    if is_indexed(job):
        _index(state)
    state.finished = _known_end(state) or _failure(state) or _success_by_policy(state)
    if state.failed_indexes is not None:
        state.last_failed = _last_failed(state)
    return state


def _count(state: JobState) -> None:
    status = state.job.status
    uncounted = status.uncounted_terminated_pods
    succeeded = set(uncounted.succeeded or ()) if uncounted else set()
    failed = set(uncounted.failed or ()) if uncounted else set()
    new = _uncounted_pods(state, succeeded, has_succeeded)
    new_failed = _uncounted_pods(state, failed, lambda pod: is_failed(pod, state.job))
    counted = sum(judge_failure(state.job, pod).counts for pod in new_failed)
    state.succeeded = (status.succeeded or 0) + len(new) + len(succeeded)
    state.failed = (status.failed or 0) + counted + len(failed)


def _uncounted_pods(state: JobState, but: set[str], holds: Callable[[Pod], bool]) -> list[Pod]:
    """Returns the tracked pods for which `holds` is true and whose uids are not in `but`.

    Pods of an Indexed Job without a valid index are left out.
    """
    return [
        pod
        for pod in state.pods
        if is_tracked(pod)
        and pod.uid not in but
        and (not is_indexed(state.job) or valid_index(pod, state.job) is not None)
        and holds(pod)
    ]


# --- indexes


def _index(state: JobState) -> None:
    job, status = state.job, state.job.status
    state.counted_indexes = Indexes.parse(status.completed_indexes, state.completions)
    ended = _uncounted_pods(state, set(), has_succeeded)
    state.succeeded_indexes = state.counted_indexes.with_indexes(indexes_of(ended))
    state.succeeded = len(state.succeeded_indexes)
    if has_limit_per_index(job):
        failed_before = Indexes.parse(status.failed_indexes, state.completions)
        lost = _uncounted_pods(state, set(), lambda pod: _fails_its_index(job, pod))
        state.failed_indexes = failed_before.with_indexes(indexes_of(lost))


def _fails_its_index(job: Job, pod: Pod) -> bool:
    if not is_failed(pod, job):
        return False
    pod_verdict = judge_failure(job, pod)
    if pod_verdict.action == "FailIndex":
        return True
    return pod_verdict.counts and index_failures(pod) >= (job.spec.backoff_limit_per_index or 0)


def _last_failed(state: JobState) -> dict[int, Pod]:
    """Returns the pod that failed last, for each index that needs another pod."""
    settled = state.succeeded_indexes | (state.failed_indexes or _NO_INDEXES)
    active = indexes_of(state.active)
    last: dict[int, Pod] = {}
    for pod in _uncounted_pods(state, set(), lambda pod: is_failed(pod, state.job)):
        index = valid_index(pod, state.job)
        if index is None or index in settled or index in active:
            continue
        before = last.get(index)
        if before is None or _is_later(pod, before):
            last[index] = pod
    return last


def _is_later(pod: Pod, other: Pod) -> bool:
    if all_index_failures(other) > all_index_failures(pod):
        return False
    return not finished_at(pod) < finished_at(other)


# --- whether it ends


def _known_end(state: JobState) -> JobCondition | None:
    """Returns the interim condition that an earlier sync decided on, None if there is none."""
    job = state.job
    return condition_of(job, SUCCESS_CRITERIA_MET) or condition_of(job, FAILURE_TARGET)


def _failure(state: JobState) -> JobCondition | None:
    reasons = (_check_policy, _check_limit, _check_deadline, _check_indexes)
    for look in reasons:
        reason, message = look(state)
        if reason:
            return new_condition(FAILURE_TARGET, reason, message, state.now)
    return None


_NO_REASON = ("", "")


def _check_policy(state: JobState) -> tuple[str, str]:
    if state.job.spec.pod_failure_policy is None:
        return _NO_REASON
    for pod in state.pods:
        if is_failed(pod, state.job) and (message := judge_failure(state.job, pod).message):
            return "PodFailurePolicy", message
    return _NO_REASON


def _check_limit(state: JobState) -> tuple[str, str]:
    limit = state.job.spec.backoff_limit
    if limit is None:
        return _NO_REASON
    if state.failed > limit or _restarts_exceed(state, limit):
        return "BackoffLimitExceeded", "Job has reached the specified backoff limit"
    return _NO_REASON


def _restarts_exceed(state: JobState, limit: int) -> bool:
    """Reports whether containers have restarted too often, for pods that restart on failure."""
    if state.job.spec.template.spec.restart_policy != "OnFailure":
        return False
    running = (pod.status for pod in state.pods if pod.status.phase in ("Running", "Pending"))
    restarts: int = sum(
        container.restart_count
        for status in running
        for container in (
            *(status.init_container_statuses or ()),
            *(status.container_statuses or ()),
        )
    )
    return restarts > 0 if limit == 0 else restarts >= limit


def deadline_in(state: JobState) -> float | None:
    """Returns the seconds until the Job exceeds its deadline, None without a deadline.

    They are negative if it has.
    """
    limit = state.job.spec.active_deadline_seconds
    if limit is None or state.started is None or state.suspended:
        return None
    return limit - (state.now - state.started).total_seconds()


def _check_deadline(state: JobState) -> tuple[str, str]:
    left = deadline_in(state)
    if left is None or left > 0:
        return _NO_REASON
    return "DeadlineExceeded", "Job was active longer than specified deadline"


def _check_indexes(state: JobState) -> tuple[str, str]:
    if state.failed_indexes is None:
        return _NO_REASON
    failed, most = len(state.failed_indexes), state.job.spec.max_failed_indexes
    if most is not None and failed > most:
        message = "Job has exceeded the specified maximal number of failed indexes"
        return "MaxFailedIndexesExceeded", message
    if failed and failed + len(state.succeeded_indexes) >= state.completions:
        return "FailedIndexes", "Job has failed indexes"
    return _NO_REASON


def _success_by_policy(state: JobState) -> JobCondition | None:
    if not is_indexed(state.job):
        return None
    message = success_message(state.job, state.succeeded_indexes)
    if not message:
        return None
    return new_condition(SUCCESS_CRITERIA_MET, "SuccessPolicy", message, state.now)


def success_by_count(state: JobState, active: int) -> JobCondition | None:
    """Returns the condition that enough pods have succeeded, None while pods are active or
    missing.
    """
    wanted = state.job.spec.completions
    enough = state.succeeded > 0 if wanted is None else state.succeeded >= wanted
    if not enough or active:
        return None
    message = "Reached expected number of succeeded pods"
    return new_condition(SUCCESS_CRITERIA_MET, "CompletionsReached", message, state.now)
