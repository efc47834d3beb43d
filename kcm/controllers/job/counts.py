"""The metrics of the Job controller, under upstream's names.

Source: pkg/controller/job/metrics/metrics.go, Kubernetes 1.33. Left out are durations of syncs,
which are measured for all controllers, and metrics of indexes and of Jobs with another `managedBy`.
"""

from __future__ import annotations

from collections.abc import Iterator

from kcm.api.batch_v1 import Job, JobStatus, end_condition
from kcm.controllers.job.pods import is_indexed, replaces_only_ended
from kcm.sdk import Counter, Counts, Create, Delete, Outcome

SYNCS = Counter(
    "job_controller_job_syncs",
    "The number of job syncs",
    ("completion_mode", "result", "action"),
)
FINISHED = Counter(
    "job_controller_jobs_finished",
    "The number of finished jobs",
    ("completion_mode", "result", "reason"),
)
PODS_FINISHED = Counter(
    "job_controller_job_pods_finished",
    "The number of finished pods that are fully tracked",
    ("completion_mode", "result"),
)
PODS_CREATED = Counter(
    "job_controller_job_pods_creation",
    "The number of pods created, by the reason for their creation",
    ("reason", "status"),
)
METRICS = (SYNCS, FINISHED, PODS_FINISHED, PODS_CREATED)


def count_sync(job: Job, after: JobStatus, terminating: int, outcome: Outcome) -> Iterator[Counts]:
    """Yields the counts that one sync adds.

    `after` is the status that it wrote, and `terminating` the number of pods that were being
    deleted when it began.
    """
    mode = "Indexed" if is_indexed(job) else "NonIndexed"
    yield SYNCS.count(mode, "error" if outcome.failures else "success", _action(outcome))
    reason = _reason(job, terminating)
    created = sum(isinstance(write, Create) for write, _ in outcome.done)
    failed = sum(isinstance(failure.write, Create) for failure in outcome.failures)
    for status, number in (("succeeded", created), ("failed", failed)):
        if number:
            yield PODS_CREATED.count(reason, status, by=number)
    if outcome.failures:
        return  # the status was not written, or not as planned
    for result in ("succeeded", "failed"):
        more = (getattr(after, result) or 0) - (getattr(job.status, result) or 0)
        if more > 0:
            yield PODS_FINISHED.count(mode, result, by=more)
    end = end_condition(job.with_status(after))
    if end is not None and end_condition(job) is None:
        result = "succeeded" if end.type == "Complete" else "failed"
        yield FINISHED.count(mode, result, end.reason or "")


def _action(outcome: Outcome) -> str:
    writes = [write for write, _ in outcome.done]
    if any(isinstance(write, Create) for write in writes):
        return "pods_created"
    if any(isinstance(write, Delete) for write in writes):
        return "pods_deleted"
    return "tracking"


def _reason(job: Job, terminating: int) -> str:
    failed = job.status.failed or 0
    if replaces_only_ended(job):
        return "recreate_failed" if failed else "new"
    return "recreate_terminating_or_failed" if failed or terminating else "new"
