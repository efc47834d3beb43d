"""What a sync finds out about a Job before it does anything: how many pods have ended, which
indexes, and whether the Job is to end, and how.

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
    condition,
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
from kcm.controllers.job.policies import success_message, verdict
from kcm.helpers.pods import is_active

_NO_INDEXES = Indexes()


@dataclass
class Decision:
    """The state of a Job and its pods, at a time."""

    job: Job
    pods: Sequence[Pod]  # all that the Job manages
    now: datetime
    started: datetime | None  # None while it is suspended and never ran
    active: list[Pod] = field(default_factory=list)
    succeeded: int = 0  # pods, or indexes
    failed: int = 0
    counted_indexes: Indexes = _NO_INDEXES  # that the status has already
    succeeded_indexes: Indexes = _NO_INDEXES
    failed_indexes: Indexes | None = None  # None: indexes do not fail by themselves
    last_failed: dict[int, Pod] = field(default_factory=dict)  # by index; to be succeeded
    finished: JobCondition | None = None  # the interim condition of the end

    @property
    def completions(self) -> int:
        return self.job.spec.completions or 0

    @property
    def suspended(self) -> bool:
        return bool(self.job.spec.suspend)


def decide(job: Job, pods: Sequence[Pod], now: datetime) -> Decision:
    """Look at a Job and its pods."""
    started = job.status.start_time
    # The deadline is about being active without a break: it counts from a resumption.
    resumes = condition_of(job, SUSPENDED) is not None
    if (started is None or resumes) and not job.spec.suspend:
        started = now.replace(microsecond=0)
    decision = Decision(job, pods, now, started, [pod for pod in pods if is_active(pod)])
    _count(decision)
    if is_indexed(job):
        _index(decision)
    decision.finished = _known_end(decision) or _failure(decision) or _success_by_policy(decision)
    if decision.failed_indexes is not None:
        decision.last_failed = _last_failed(decision)
    return decision


def _count(decision: Decision) -> None:
    status = decision.job.status
    uncounted = status.uncounted_terminated_pods
    succeeded = set(uncounted.succeeded or ()) if uncounted else set()
    failed = set(uncounted.failed or ()) if uncounted else set()
    new = _tracked(decision, succeeded, has_succeeded)
    new_failed = _tracked(decision, failed, lambda pod: is_failed(pod, decision.job))
    counted = sum(verdict(decision.job, pod).counts for pod in new_failed)
    decision.succeeded = (status.succeeded or 0) + len(new) + len(succeeded)
    decision.failed = (status.failed or 0) + counted + len(failed)


def _tracked(decision: Decision, but: set[str], holds: Callable[[Pod], bool]) -> list[Pod]:
    """Pods that are in no count yet, with an index of the Job where it has any."""
    return [
        pod
        for pod in decision.pods
        if is_tracked(pod)
        and pod.uid not in but
        and (not is_indexed(decision.job) or valid_index(pod, decision.job) is not None)
        and holds(pod)
    ]


# --- indexes


def _index(decision: Decision) -> None:
    job, status = decision.job, decision.job.status
    decision.counted_indexes = Indexes.parse(status.completed_indexes, decision.completions)
    ended = _tracked(decision, set(), has_succeeded)
    decision.succeeded_indexes = decision.counted_indexes.adding(indexes_of(ended))
    decision.succeeded = len(decision.succeeded_indexes)
    if has_limit_per_index(job):
        known = Indexes.parse(status.failed_indexes, decision.completions)
        lost = _tracked(decision, set(), lambda pod: _fails_its_index(job, pod))
        decision.failed_indexes = known.adding(indexes_of(lost))


def _fails_its_index(job: Job, pod: Pod) -> bool:
    if not is_failed(pod, job):
        return False
    said = verdict(job, pod)
    if said.action == "FailIndex":
        return True
    return said.counts and index_failures(pod) >= (job.spec.backoff_limit_per_index or 0)


def _last_failed(decision: Decision) -> dict[int, Pod]:
    """For each index that needs another pod the one that failed last: it bears the count."""
    settled = decision.succeeded_indexes | (decision.failed_indexes or _NO_INDEXES)
    active = indexes_of(decision.active)
    last: dict[int, Pod] = {}
    for pod in _tracked(decision, set(), lambda pod: is_failed(pod, decision.job)):
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


def _known_end(decision: Decision) -> JobCondition | None:
    """What an earlier sync decided stands."""
    job = decision.job
    return condition_of(job, SUCCESS_CRITERIA_MET) or condition_of(job, FAILURE_TARGET)


def _failure(decision: Decision) -> JobCondition | None:
    reasons = (_failed_by_policy, _failed_by_limit, _failed_by_deadline, _failed_by_indexes)
    for look in reasons:
        reason, message = look(decision)
        if reason:
            return condition(FAILURE_TARGET, reason, message, decision.now)
    return None


_NO_REASON = ("", "")


def _failed_by_policy(decision: Decision) -> tuple[str, str]:
    if decision.job.spec.pod_failure_policy is None:
        return _NO_REASON
    for pod in decision.pods:
        if is_failed(pod, decision.job) and (message := verdict(decision.job, pod).message):
            return "PodFailurePolicy", message
    return _NO_REASON


def _failed_by_limit(decision: Decision) -> tuple[str, str]:
    limit = decision.job.spec.backoff_limit
    if limit is None:
        return _NO_REASON
    if decision.failed > limit or _restarts_exceed(decision, limit):
        return "BackoffLimitExceeded", "Job has reached the specified backoff limit"
    return _NO_REASON


def _restarts_exceed(decision: Decision, limit: int) -> bool:
    """Where containers are started again in their pod, their restarts are the failures."""
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


def deadline_in(decision: Decision) -> float | None:
    """Seconds until the Job has been active for too long; None without such a limit."""
    limit = decision.job.spec.active_deadline_seconds
    if limit is None or decision.started is None or decision.suspended:
        return None
    return limit - (decision.now - decision.started).total_seconds()


def _failed_by_deadline(decision: Decision) -> tuple[str, str]:
    left = deadline_in(decision)
    if left is None or left > 0:
        return _NO_REASON
    return "DeadlineExceeded", "Job was active longer than specified deadline"


def _failed_by_indexes(decision: Decision) -> tuple[str, str]:
    if decision.failed_indexes is None:
        return _NO_REASON
    failed, most = len(decision.failed_indexes), decision.job.spec.max_failed_indexes
    if most is not None and failed > most:
        message = "Job has exceeded the specified maximal number of failed indexes"
        return "MaxFailedIndexesExceeded", message
    if failed and failed + len(decision.succeeded_indexes) >= decision.completions:
        return "FailedIndexes", "Job has failed indexes"
    return _NO_REASON


def _success_by_policy(decision: Decision) -> JobCondition | None:
    if not is_indexed(decision.job):
        return None
    message = success_message(decision.job, decision.succeeded_indexes)
    if not message:
        return None
    return condition(SUCCESS_CRITERIA_MET, "SuccessPolicy", message, decision.now)


def success_by_count(decision: Decision, active: int) -> JobCondition | None:
    """Whether enough pods have succeeded, and none are left that may still do."""
    wanted = decision.job.spec.completions
    enough = decision.succeeded > 0 if wanted is None else decision.succeeded >= wanted
    if not enough or active:
        return None
    message = "Reached expected number of succeeded pods"
    return condition(SUCCESS_CRITERIA_MET, "CompletionsReached", message, decision.now)
