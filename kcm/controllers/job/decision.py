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
    found = Decision(job, pods, now, started, [pod for pod in pods if is_active(pod)])
    _count(found)
    if is_indexed(job):
        _index(found)
    found.finished = _known_end(found) or _failure(found) or _success_by_policy(found)
    if found.failed_indexes is not None:
        found.last_failed = _last_failed(found)
    return found


def _count(found: Decision) -> None:
    status = found.job.status
    uncounted = status.uncounted_terminated_pods
    succeeded = set(uncounted.succeeded or ()) if uncounted else set()
    failed = set(uncounted.failed or ()) if uncounted else set()
    new = _tracked(found, succeeded, has_succeeded)
    new_failed = _tracked(found, failed, lambda pod: is_failed(pod, found.job))
    counted = sum(verdict(found.job, pod).counts for pod in new_failed)
    found.succeeded = (status.succeeded or 0) + len(new) + len(succeeded)
    found.failed = (status.failed or 0) + counted + len(failed)


def _tracked(found: Decision, but: set[str], holds: Callable[[Pod], bool]) -> list[Pod]:
    """Pods that are in no count yet, with an index of the Job where it has any."""
    return [
        pod
        for pod in found.pods
        if is_tracked(pod)
        and pod.uid not in but
        and (not is_indexed(found.job) or valid_index(pod, found.job) is not None)
        and holds(pod)
    ]


# --- indexes


def _index(found: Decision) -> None:
    job, status = found.job, found.job.status
    found.counted_indexes = Indexes.parse(status.completed_indexes, found.completions)
    ended = _tracked(found, set(), has_succeeded)
    found.succeeded_indexes = found.counted_indexes.adding(indexes_of(ended))
    found.succeeded = len(found.succeeded_indexes)
    if has_limit_per_index(job):
        known = Indexes.parse(status.failed_indexes, found.completions)
        lost = _tracked(found, set(), lambda pod: _fails_its_index(job, pod))
        found.failed_indexes = known.adding(indexes_of(lost))


def _fails_its_index(job: Job, pod: Pod) -> bool:
    if not is_failed(pod, job):
        return False
    said = verdict(job, pod)
    if said.action == "FailIndex":
        return True
    return said.counts and index_failures(pod) >= (job.spec.backoff_limit_per_index or 0)


def _last_failed(found: Decision) -> dict[int, Pod]:
    """For each index that needs another pod the one that failed last: it bears the count."""
    settled = found.succeeded_indexes | (found.failed_indexes or _NO_INDEXES)
    active = indexes_of(found.active)
    last: dict[int, Pod] = {}
    for pod in _tracked(found, set(), lambda pod: is_failed(pod, found.job)):
        index = valid_index(pod, found.job)
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


def _known_end(found: Decision) -> JobCondition | None:
    """What an earlier sync decided stands."""
    job = found.job
    return condition_of(job, SUCCESS_CRITERIA_MET) or condition_of(job, FAILURE_TARGET)


def _failure(found: Decision) -> JobCondition | None:
    reasons = (_failed_by_policy, _failed_by_limit, _failed_by_deadline, _failed_by_indexes)
    for look in reasons:
        reason, message = look(found)
        if reason:
            return condition(FAILURE_TARGET, reason, message, found.now)
    return None


_NO_REASON = ("", "")


def _failed_by_policy(found: Decision) -> tuple[str, str]:
    if found.job.spec.pod_failure_policy is None:
        return _NO_REASON
    for pod in found.pods:
        if is_failed(pod, found.job) and (message := verdict(found.job, pod).message):
            return "PodFailurePolicy", message
    return _NO_REASON


def _failed_by_limit(found: Decision) -> tuple[str, str]:
    limit = found.job.spec.backoff_limit
    if limit is None:
        return _NO_REASON
    if found.failed > limit or _restarts_exceed(found, limit):
        return "BackoffLimitExceeded", "Job has reached the specified backoff limit"
    return _NO_REASON


def _restarts_exceed(found: Decision, limit: int) -> bool:
    """Where containers are started again in their pod, their restarts are the failures."""
    if found.job.spec.template.spec.restart_policy != "OnFailure":
        return False
    running = (pod.status for pod in found.pods if pod.status.phase in ("Running", "Pending"))
    restarts: int = sum(
        container.restart_count
        for status in running
        for container in (
            *(status.init_container_statuses or ()),
            *(status.container_statuses or ()),
        )
    )
    return restarts > 0 if limit == 0 else restarts >= limit


def deadline_in(found: Decision) -> float | None:
    """Seconds until the Job has been active for too long; None without such a limit."""
    limit = found.job.spec.active_deadline_seconds
    if limit is None or found.started is None or found.suspended:
        return None
    return limit - (found.now - found.started).total_seconds()


def _failed_by_deadline(found: Decision) -> tuple[str, str]:
    left = deadline_in(found)
    if left is None or left > 0:
        return _NO_REASON
    return "DeadlineExceeded", "Job was active longer than specified deadline"


def _failed_by_indexes(found: Decision) -> tuple[str, str]:
    if found.failed_indexes is None:
        return _NO_REASON
    failed, most = len(found.failed_indexes), found.job.spec.max_failed_indexes
    if most is not None and failed > most:
        message = "Job has exceeded the specified maximal number of failed indexes"
        return "MaxFailedIndexesExceeded", message
    if failed and failed + len(found.succeeded_indexes) >= found.completions:
        return "FailedIndexes", "Job has failed indexes"
    return _NO_REASON


def _success_by_policy(found: Decision) -> JobCondition | None:
    if not is_indexed(found.job):
        return None
    message = success_message(found.job, found.succeeded_indexes)
    if not message:
        return None
    return condition(SUCCESS_CRITERIA_MET, "SuccessPolicy", message, found.now)


def success_by_count(found: Decision, active: int) -> JobCondition | None:
    """Whether enough pods have succeeded, and none are left that may still do."""
    wanted = found.job.spec.completions
    enough = found.succeeded > 0 if wanted is None else found.succeeded >= wanted
    if not enough or active:
        return None
    message = "Reached expected number of succeeded pods"
    return condition(SUCCESS_CRITERIA_MET, "CompletionsReached", message, found.now)
