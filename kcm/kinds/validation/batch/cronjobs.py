"""Validation of CronJobs.

Source: pkg/apis/batch/validation/validation.go, Kubernetes 1.33.
"""

from __future__ import annotations

from kcm.api.batch_v1 import CronJob, CronJobSpec, JobTemplateSpec
from kcm.apimachinery import cron, names
from kcm.apimachinery.field_errors import (
    Faults,
    invalid,
    not_negative,
    not_supported,
    one_of,
    required,
)
from kcm.kinds.validation import meta
from kcm.kinds.validation.batch import jobs

_POLICIES = ("Allow", "Forbid", "Replace")
_NAME_LENGTH = 52  # 11 characters are appended for the name of a Job


def create(cron_job: CronJob) -> Faults:
    faults = meta.metadata(cron_job, namespaced=True, name_rule=names.subdomain_faults)
    faults += _spec(cron_job.spec, None)
    if len(cron_job.name) > _NAME_LENGTH:
        detail = f"must be no more than {_NAME_LENGTH} characters"
        faults.append(invalid("metadata.name", cron_job.name, detail))
    return faults


def update(new: CronJob, old: CronJob) -> Faults:
    return meta.metadata_update(new, old) + _spec(new.spec, old.spec)


def _spec(spec: CronJobSpec, old: CronJobSpec | None) -> Faults:
    faults = _schedule(spec, old, "spec.schedule")
    faults += not_negative("spec.startingDeadlineSeconds", spec.starting_deadline_seconds)
    if old is None or old.time_zone != spec.time_zone:
        faults += _time_zone(spec.time_zone, "spec.timeZone")
    return [
        *faults,
        *one_of("spec.concurrencyPolicy", spec.concurrency_policy, _POLICIES),
        *_job_template(spec.job_template, "spec.jobTemplate.spec"),
        *not_negative("spec.successfulJobsHistoryLimit", spec.successful_jobs_history_limit),
        *not_negative("spec.failedJobsHistoryLimit", spec.failed_jobs_history_limit),
    ]


def _schedule(spec: CronJobSpec, old: CronJobSpec | None, path: str) -> Faults:
    text = spec.schedule
    if not text:
        return [required(path)]
    faults: Faults = []
    try:
        cron.parse(text)
    except cron.ScheduleError as error:
        faults.append(invalid(path, text, str(error)))
    if "TZ" not in text:
        return faults
    # Older schedules may contain a time zone, which is no longer accepted.
    if old is None or "TZ" not in old.schedule:
        detail = "cannot use TZ or CRON_TZ in schedule, use timeZone field instead"
        faults.append(invalid(path, text, detail))
    elif spec.time_zone is not None:
        detail = "cannot use both timeZone field and TZ or CRON_TZ in schedule"
        faults.append(invalid(path, text, detail))
    return faults


def _time_zone(zone: str | None, path: str) -> Faults:
    if zone is None:
        return []
    if not zone:
        return [invalid(path, zone, "timeZone must be nil or non-empty string")]
    unknown = invalid(path, zone, f"unknown time zone {zone}")
    if zone.lower() == "local":
        detail = (
            "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones"
        )
        return [invalid(path, zone, detail)] + ([] if zone == "Local" else [unknown])
    try:
        cron.load_zone(zone)
    except cron.ScheduleError:
        return [unknown]
    return []


def _job_template(template: JobTemplateSpec, path: str) -> Faults:
    spec = template.spec
    faults = jobs.spec(spec, path)
    if spec.selector is not None:
        detail = "`selector` will be auto-generated"
        faults.append(invalid(f"{path}.selector", spec.selector, detail))
    if spec.manual_selector:
        faults.append(not_supported(f"{path}.manualSelector", True, ("nil", "false")))
    return faults
