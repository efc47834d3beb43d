"""What a sync finds out about a Job before it does anything.

It finds how many pods have ended, which indexes, and whether and how the Job is to end.

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
    """The state of a Job and its pods at a time."""

    job: Job
    pods: Sequence[Pod]  # all pods that the Job manages
    now: datetime
    started: datetime | None  # None while the Job is suspended and never ran
    active: list[Pod] = field(default_factory=list)
    succeeded: int = 0  # pods, or indexes
    failed: int = 0
    counted_indexes: Indexes = _NO_INDEXES  # indexes that the status has already
    succeeded_indexes: Indexes = _NO_INDEXES
    failed_indexes: Indexes | None = None  # None where indexes do not fail by themselves
    # keyed by index, for their successors
    last_failed: dict[int, Pod] = field(default_factory=dict)
    finished: JobCondition | None = None  # the interim condition of the end

    @property
    def completions(self) -> int:
        return self.job.spec.completions or 0

    @property
    def suspended(self) -> bool:
        return bool(self.job.spec.suspend)


def observe_job(job: Job, pods: Sequence[Pod], now: datetime) -> JobState:
    """Looks at a Job and its pods."""
    started = job.status.start_time
    # The deadline is about being active without a break: it counts from a resumption.
    resumes = condition_of(job, SUSPENDED) is not None
    if (started is None or resumes) and not job.spec.suspend:
        started = now.replace(microsecond=0)
    decision = JobState(job, pods, now, started, [pod for pod in pods if is_active(pod)])
    _count(decision)
    if is_indexed(job):
        _index(decision)
    decision.finished = _known_end(decision) or _failure(decision) or _success_by_policy(decision)
    if decision.failed_indexes is not None:
        decision.last_failed = _last_failed(decision)
    return decision


def _count(decision: JobState) -> None:
    status = decision.job.status
    uncounted = status.uncounted_terminated_pods
    succeeded = set(uncounted.succeeded or ()) if uncounted else set()
    failed = set(uncounted.failed or ()) if uncounted else set()
    new = _uncounted_pods(decision, succeeded, has_succeeded)
    new_failed = _uncounted_pods(decision, failed, lambda pod: is_failed(pod, decision.job))
    counted = sum(judge_failure(decision.job, pod).counts for pod in new_failed)
    decision.succeeded = (status.succeeded or 0) + len(new) + len(succeeded)
    decision.failed = (status.failed or 0) + counted + len(failed)


def _uncounted_pods(decision: JobState, but: set[str], holds: Callable[[Pod], bool]) -> list[Pod]:
    """Returns the pods that are in no count yet, with an index of the Job where it has any."""
    return [
        pod
        for pod in decision.pods
        if is_tracked(pod)
        and pod.uid not in but
        and (not is_indexed(decision.job) or valid_index(pod, decision.job) is not None)
        and holds(pod)
    ]


# --- indexes


def _index(decision: JobState) -> None:
    job, status = decision.job, decision.job.status
    decision.counted_indexes = Indexes.parse(status.completed_indexes, decision.completions)
    ended = _uncounted_pods(decision, set(), has_succeeded)
    decision.succeeded_indexes = decision.counted_indexes.with_indexes(indexes_of(ended))
    decision.succeeded = len(decision.succeeded_indexes)
    if has_limit_per_index(job):
        known = Indexes.parse(status.failed_indexes, decision.completions)
        lost = _uncounted_pods(decision, set(), lambda pod: _fails_its_index(job, pod))
        decision.failed_indexes = known.with_indexes(indexes_of(lost))


def _fails_its_index(job: Job, pod: Pod) -> bool:
    if not is_failed(pod, job):
        return False
    pod_verdict = judge_failure(job, pod)
    if pod_verdict.action == "FailIndex":
        return True
    return pod_verdict.counts and index_failures(pod) >= (job.spec.backoff_limit_per_index or 0)


def _last_failed(decision: JobState) -> dict[int, Pod]:
    """Returns the pod that failed last for each index that needs another pod; it bears the
    count.
    """
    settled = decision.succeeded_indexes | (decision.failed_indexes or _NO_INDEXES)
    active = indexes_of(decision.active)
    last: dict[int, Pod] = {}
    for pod in _uncounted_pods(decision, set(), lambda pod: is_failed(pod, decision.job)):
        index = valid_index(pod, decision.job)
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


def _known_end(decision: JobState) -> JobCondition | None:
    """Returns the end that an earlier sync decided. It stands."""
    job = decision.job
    return condition_of(job, SUCCESS_CRITERIA_MET) or condition_of(job, FAILURE_TARGET)


def _failure(decision: JobState) -> JobCondition | None:
    reasons = (_check_policy, _check_limit, _check_deadline, _check_indexes)
    for look in reasons:
        reason, message = look(decision)
        if reason:
            return new_condition(FAILURE_TARGET, reason, message, decision.now)
    return None


_NO_REASON = ("", "")


def _check_policy(decision: JobState) -> tuple[str, str]:
    if decision.job.spec.pod_failure_policy is None:
        return _NO_REASON
    for pod in decision.pods:
        if is_failed(pod, decision.job) and (message := judge_failure(decision.job, pod).message):
            return "PodFailurePolicy", message
    return _NO_REASON


def _check_limit(decision: JobState) -> tuple[str, str]:
    limit = decision.job.spec.backoff_limit
    if limit is None:
        return _NO_REASON
    if decision.failed > limit or _restarts_exceed(decision, limit):
        return "BackoffLimitExceeded", "Job has reached the specified backoff limit"
    return _NO_REASON


def _restarts_exceed(decision: JobState, limit: int) -> bool:
    """Reports whether restarts of containers exceed the limit, where they are the failures."""
    if decision.job.spec.template.spec.restart_policy != "OnFailure":
        return False
    running = (pod.status for pod in decision.pods if pod.status.phase in ("Running", "Pending"))
    restarts: int = sum(
        container.restart_count
        for status in running
        for container in (
            *(status.init_container_statuses or ()),
            *(status.container_statuses or ()),
        )
    )
    return restarts > 0 if limit == 0 else restarts >= limit


def deadline_in(decision: JobState) -> float | None:
    """Returns the seconds until the Job has been active for too long, None without such a
    limit.
    """
    limit = decision.job.spec.active_deadline_seconds
    if limit is None or decision.started is None or decision.suspended:
        return None
    return limit - (decision.now - decision.started).total_seconds()


def _check_deadline(decision: JobState) -> tuple[str, str]:
    left = deadline_in(decision)
    if left is None or left > 0:
        return _NO_REASON
    return "DeadlineExceeded", "Job was active longer than specified deadline"


def _check_indexes(decision: JobState) -> tuple[str, str]:
    if decision.failed_indexes is None:
        return _NO_REASON
    failed, most = len(decision.failed_indexes), decision.job.spec.max_failed_indexes
    if most is not None and failed > most:
        message = "Job has exceeded the specified maximal number of failed indexes"
        return "MaxFailedIndexesExceeded", message
    if failed and failed + len(decision.succeeded_indexes) >= decision.completions:
        return "FailedIndexes", "Job has failed indexes"
    return _NO_REASON


def _success_by_policy(decision: JobState) -> JobCondition | None:
    if not is_indexed(decision.job):
        return None
    message = success_message(decision.job, decision.succeeded_indexes)
    if not message:
        return None
    return new_condition(SUCCESS_CRITERIA_MET, "SuccessPolicy", message, decision.now)


def success_by_count(decision: JobState, active: int) -> JobCondition | None:
    """Returns the condition that enough pods have succeeded and none are left that still may."""
    wanted = decision.job.spec.completions
    enough = decision.succeeded > 0 if wanted is None else decision.succeeded >= wanted
    if not enough or active:
        return None
    message = "Reached expected number of succeeded pods"
    return new_condition(SUCCESS_CRITERIA_MET, "CompletionsReached", message, decision.now)
