"""CronJob: starts Jobs by a schedule.

A sync checks earlier Jobs, starts the Job that is due, if there is one, and requeues the key for
the time when the next Job is due. The name of a Job contains its scheduled time. So no time gets
two Jobs, even if two syncs run or a worker crashes.

Departure: a changed schedule takes effect at once. A time of the new schedule that has passed since
the last start counts as missed; upstream finds it at the next change of anything else.

Source: pkg/controller/cronjob/{cronjob_controllerv2,utils}.go, Kubernetes 1.33.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from pydantic import Field

from kcm import errors
from kcm.api.batch_v1 import SCHEDULED_AT, CronJob, CronJobStatus, Job, end_condition
from kcm.api.core_v1 import ObjectReference
from kcm.apimachinery import cron
from kcm.apimachinery.labels import Selector
from kcm.apimachinery.meta_v1 import KubeObject, ObjectMeta, shift_time
from kcm.apimachinery.ownership import new_controller_ref
from kcm.controllers.cronjob.times import NeverError, find_missed, next_in
from kcm.helpers.owners import list_controlled
from kcm.sdk import (
    Controller,
    Counts,
    Create,
    Delete,
    DeleteOptions,
    Event,
    Histogram,
    Options,
    Outcome,
    Plan,
    UpdateStatus,
    View,
    Watch,
    exponential_buckets,
    own_key,
    owner_keys,
    sum_counts,
)

_WITH_PODS = DeleteOptions(propagation_policy="Background")
_STILL_RUNNING = (
    "Not starting job because prior execution is running and concurrency policy is Forbid"
)
# No Event is recorded when the Job exists already or its namespace is being deleted.
_NO_NEWS = (errors.AlreadyExists, errors.NamespaceTerminating)
_TOO_MANY = (
    "too many missed start times. Set or decrease .spec.startingDeadlineSeconds or check clock skew"
)


SKEW = Histogram(
    "cronjob_controller_cronjob_job_creation_skew_duration_seconds",
    "Time between when a cronjob is scheduled to be run, and when the corresponding job is created",
    exponential_buckets(1, 2, 10),
)


class CronJobOptions(Options):
    """The options of the CronJob controller."""

    concurrent_cron_job_syncs: int = Field(
        default=5,
        ge=1,
        description="The number of cron job objects that are allowed to sync concurrently. "
        "Larger number = more responsive jobs, but more CPU (and network) load",
    )


def _no_selector(cron_job: CronJob) -> Selector | None:
    return None  # Jobs are never adopted.


class CronJobController(Controller):
    """Starts and deletes the Jobs of CronJobs. A key is a CronJob."""

    name = "cronjob-controller"
    short_name = "cronjob"
    metrics = (SKEW,)
    group = "workloads"
    options_type = CronJobOptions
    options: CronJobOptions

    def watches(self) -> tuple[Watch[Any], ...]:
        return (Watch(CronJob, own_key), Watch(Job, owner_keys(CronJob, _no_selector)))

    def concurrent_syncs(self) -> int:
        return self.options.concurrent_cron_job_syncs

    def reconcile(self, key: str, view: View) -> Plan:
        cron_job = view.lister(CronJob).find(key)
        if cron_job is None:
            return Plan()
        jobs = list_controlled(cron_job, Job, view)
        sync = _CronJobSync(cron_job, jobs, view)
        sync.update_active()
        if not cron_job.deleting and not cron_job.spec.suspend:
            sync.start()
        return sync.finish()


class _CronJobSync:
    """Builds the plan of one sync of one CronJob."""

    def __init__(self, cron_job: CronJob, jobs: Sequence[Job], view: View) -> None:
        self._cron_job = cron_job
        self._jobs = {job.uid: job for job in jobs}
        self._others = view.lister(Job)
        self._now = view.now
        self._plan = Plan()
        self._status = cron_job.status
        self._created: Create | None = None
        self._due: datetime | None = None

    def _record(self, reason: str, message: str, *, warning: bool = False) -> None:
        self._plan.record(self._cron_job, reason, message, warning=warning)

    # --- earlier Jobs

    def update_active(self) -> None:
        """Updates the active Jobs and the last success in the status, and deletes old Jobs."""
        self._clean_up()
        active = {ref.uid for ref in self._status.active or ()}
        for uid, job in self._jobs.items():
            finished = end_condition(job)
            if finished is None and uid not in active:
                message = f"Saw a job that the controller did not create or forgot: {job.name}"
                self._record("UnexpectedJob", message, warning=True)
            elif finished is not None and uid in active:
                message = f"Saw completed job: {job.name}, status: {finished.type}"
                self._record("SawCompletedJob", message)
                self._forget(uid)
            self._update_last_success(job)
        for ref in list(self._status.active or ()):
            if ref.uid not in self._jobs:
                self._record("MissingJob", f"Active job went missing: {ref.name}")
                self._forget(ref.uid or "")

    def _update_last_success(self, job: Job) -> None:
        moment, last = job.status.completion_time, self._status.last_successful_time
        if moment is not None and (last is None or moment > last):
            self._status = self._status.replace(last_successful_time=moment)

    def _forget(self, uid: str) -> None:
        left = [ref for ref in self._status.active or () if ref.uid != uid]
        self._status = self._status.replace(active=left or None)

    def _clean_up(self) -> None:
        spec = self._cron_job.spec
        limits = {
            "Complete": spec.successful_jobs_history_limit,
            "Failed": spec.failed_jobs_history_limit,
        }
        for type_, limit in limits.items():
            if limit is not None:
                ended = [job for job in self._jobs.values() if _has_ended_as(job, type_)]
                ended.sort(key=_by_start)
                for job in ended[: max(0, len(ended) - limit)]:
                    self._delete(job)

    def _delete(self, job: Job) -> None:
        if not job.deleting:
            self._plan.then(Delete(job, _WITH_PODS), essential=True)
        self._forget(job.uid)

    # --- the next Job

    def start(self) -> None:
        """Starts the Job that is due, if there is one, and plans the next sync."""
        schedule = self._schedule()
        if schedule is None:
            return
        try:
            starts = find_missed(self._cron_job, schedule, self._now, by_deadline=True)
        except NeverError as error:
            message = f"invalid schedule: {self._cron_job.spec.schedule} : {error}"
            self._record("InvalidSchedule", message, warning=True)
            return
        if starts.latest is not None:
            if starts.are_many:
                self._record("TooManyMissedTimes", _TOO_MANY, warning=True)
            self._start_at(starts.latest)
        after = self._cron_job
        if self._due is not None:
            after = after.with_status(self._status.replace(last_schedule_time=self._due))
        self._plan.requeue_after = next_in(after, schedule, self._now)

    def _schedule(self) -> cron.Schedule | None:
        """Returns the parsed schedule, or None after recording an Event that it is not valid.

        No retry follows: the next sync comes when the CronJob changes.
        """
        spec = self._cron_job.spec
        if spec.time_zone is not None:
            try:
                cron.load_zone(spec.time_zone)
            except cron.ScheduleError as error:
                message = f'invalid timeZone: "{spec.time_zone}": {error}'
                self._record("UnknownTimeZone", message, warning=True)
                return None
        if "TZ" in spec.schedule:
            self._record("UnsupportedSchedule", _describe_unsupported(spec.schedule), warning=True)
        try:
            return cron.parse(spec.schedule, spec.time_zone)
        except cron.ScheduleError as error:
            message = f'unparseable schedule: "{spec.schedule}" : {error}'
            self._record("UnparseableSchedule", message, warning=True)
            return None

    def _start_at(self, due: datetime) -> None:
        spec, active = self._cron_job.spec, self._status.active or ()
        if _is_too_late(due, spec.starting_deadline_seconds, self._now):
            when = due.strftime("%a, %d %b %Y %H:%M:%S +0000")
            message = f"Missed scheduled time to start a job: {when}"
            self._record("MissSchedule", message, warning=True)
            return
        name = _name(self._cron_job, due)
        if self._status.last_schedule_time == due or any(ref.name == name for ref in active):
            return
        running = [job for ref in active if (job := self._jobs.get(ref.uid or ""))]
        if running and spec.concurrency_policy == "Forbid":
            self._record("JobAlreadyActive", _STILL_RUNNING)
            return
        for job in running if spec.concurrency_policy == "Replace" else ():
            self._delete(job)
        self._create(_job(self._cron_job, name, due), due)

    def _create(self, job: Job, due: datetime) -> None:
        present = self._others.find(job.key)
        if present is None:
            self._due, self._created = due, Create(job)
            self._plan.then(self._created)
        elif present.uid in self._jobs:  # an earlier sync created it but did not write the status
            self._due = due
            self._status = _with_started(self._status, present, due)

    # --- the plan

    def finish(self) -> Plan:
        """Returns the plan. Its status, its counts and its last Events are computed from the
        outcome.
        """
        self._plan.status_after = self._update_status
        self._plan.events_after = self._job_events
        self._plan.counts_after = self._count_starts
        return self._plan

    def _count_starts(self, outcome: Outcome) -> Counts:
        late = [self._now - self._due for write, _ in outcome.done
                if write is self._created and self._due is not None]  # fmt: skip
        return sum_counts(SKEW.observe(delay.total_seconds()) for delay in late)

    def _update_status(self, outcome: Outcome) -> UpdateStatus:
        status = self._status
        for write, job in outcome.done:
            if write is self._created and self._due is not None:
                status = _with_started(status, job, self._due)
        return UpdateStatus(self._cron_job.with_status(status), self._cron_job)

    def _job_events(self, outcome: Outcome) -> list[Event]:
        about = self._cron_job
        events = []
        for write, job in outcome.done:
            if isinstance(write, Create):
                events.append(Event(about, "Normal", "SuccessfulCreate", f"Created job {job.name}"))
            elif isinstance(write, Delete):
                events.append(Event(about, "Normal", "SuccessfulDelete", f"Deleted job {job.name}"))
        for failure in outcome.failures:
            if isinstance(failure.write, Create):
                if isinstance(failure.error, _NO_NEWS):
                    continue
                message = f"Error creating job: {failure.error}"
                events.append(Event(about, "Warning", "FailedCreate", message))
            elif isinstance(failure.write, Delete):
                message = f"Deleted job: {failure.error}"
                events.append(Event(about, "Warning", "FailedDelete", message))
        return events


# --- helpers


def _has_ended_as(job: Job, type_: str) -> bool:
    finished = end_condition(job)
    return finished is not None and finished.type == type_


def _by_start(job: Job) -> tuple[bool, float, str]:
    """Returns a sort key by start time, then name. Jobs that have not started come last."""
    start = job.status.start_time
    return start is None, start.timestamp() if start is not None else 0.0, job.name


def _is_too_late(due: datetime, seconds: int | None, now: datetime) -> bool:
    return seconds is not None and shift_time(due, seconds) < now


def _name(cron_job: CronJob, due: datetime) -> str:
    """Returns the name of the Job for a scheduled time.

    It is the same in every sync, so that a second Job for the time cannot be created.
    """
    return f"{cron_job.name}-{int(due.timestamp()) // 60}"


def _job(cron_job: CronJob, name: str, due: datetime) -> Job:
    template, zone = cron_job.spec.job_template, cron_job.spec.time_zone
    meta = template.metadata
    local = due.astimezone(cron.load_zone(zone)) if zone else due
    annotations = {**(meta.annotations or {}), SCHEDULED_AT: _rfc3339(local)}
    return Job(
        metadata=ObjectMeta(
            name=name,
            namespace=cron_job.metadata.namespace,
            labels=dict(meta.labels) if meta.labels else None,
            annotations=annotations,
            owner_references=[new_controller_ref(cron_job)],
        ),
        spec=template.spec,
    )


def _rfc3339(moment: datetime) -> str:
    return moment.isoformat().removesuffix("+00:00") + ("" if moment.utcoffset() else "Z")


def _with_started(status: CronJobStatus, job: KubeObject, due: datetime) -> CronJobStatus:
    """Returns the status after the Job for the time `due` was started.

    A Job that has ended already is not added to the active ones.
    """
    status = status.replace(last_schedule_time=due)
    is_listed = any(ref.uid == job.uid for ref in status.active or ())
    if is_listed or (isinstance(job, Job) and end_condition(job) is not None):
        return status
    reference = ObjectReference(
        api_version=job.api_version,
        kind=job.kind,
        namespace=job.metadata.namespace,
        name=job.name,
        uid=job.uid,
        resource_version=job.metadata.resource_version,
    )
    return status.replace(active=[*(status.active or ()), reference])


def _describe_unsupported(schedule: str) -> str:
    return (
        f'CRON_TZ or TZ used in schedule "{schedule}" is not officially supported, see '
        "https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/ for more details"
    )
