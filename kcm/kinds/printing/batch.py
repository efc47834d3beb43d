"""The columns of Jobs and CronJobs.

Source: pkg/printers/internalversion/printers.go, Kubernetes 1.33.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from kcm.api.batch_v1 import CronJob, Job, JobSpec, condition_of, end_condition
from kcm.apimachinery.meta_v1 import KubeObject
from kcm.kinds.printing.column import AGE, NAME, NONE, Column, containers, selector
from kcm.kinds.printing.durations import age, human_duration


def _status(job: Job, _: datetime) -> str:
    finished = end_condition(job)
    if finished is not None:
        return finished.type
    if job.deleting:
        return "Terminating"
    stages = ("Suspended", "FailureTarget", "SuccessCriteriaMet")
    return next((stage for stage in stages if condition_of(job, stage)), "Running")


def _completions(job: Job, _: datetime) -> str:
    done, parallelism = job.status.succeeded or 0, job.spec.parallelism or 0
    if job.spec.completions is not None:
        return f"{done}/{job.spec.completions}"
    return f"{done}/1 of {parallelism}" if parallelism > 1 else f"{done}/1"


def _duration(job: Job, now: datetime) -> str:
    start, end = job.status.start_time, job.status.completion_time
    return human_duration((end or now) - start) if start is not None else ""


def _get_job_spec(job: Job | CronJob) -> JobSpec:
    return job.spec if isinstance(job, Job) else job.spec.job_template.spec


def _last(cron_job: CronJob, now: datetime) -> str:
    last = cron_job.status.last_schedule_time
    return age(last, now) if last is not None else NONE


def _selector(job: Job | CronJob, _: datetime) -> str:
    selector_of_job = _get_job_spec(job).selector
    return NONE if selector_of_job is None else selector(selector_of_job)


_WIDE = (
    Column(
        "Containers",
        lambda job, _: containers(_get_job_spec(job).template.spec.containers, "name"),
        wide=True,
    ),
    Column(
        "Images",
        lambda job, _: containers(_get_job_spec(job).template.spec.containers, "image"),
        wide=True,
    ),
    Column("Selector", _selector, wide=True),
)

COLUMNS: Mapping[type[KubeObject], tuple[Column, ...]] = {
    Job: (
        NAME,
        Column("Status", _status),
        Column("Completions", _completions),
        Column("Duration", _duration),
        AGE,
        *_WIDE,
    ),
    CronJob: (
        NAME,
        Column("Schedule", lambda cron_job, _: cron_job.spec.schedule),
        Column("Timezone", lambda cron_job, _: cron_job.spec.time_zone or NONE),
        Column("Suspend", lambda cron_job, _: str(bool(cron_job.spec.suspend))),
        Column(
            "Active", lambda cron_job, _: str(len(cron_job.status.active or ())), type="integer"
        ),
        Column("Last Schedule", _last),
        AGE,
        *_WIDE,
    ),
}
