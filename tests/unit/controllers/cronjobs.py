"""One CronJob with its controller, for the tests of CronJobs."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from kcm.api.batch_v1 import CronJob, Job, JobCondition
from kcm.apimachinery.meta_v1 import KubeObject
from kcm.controllers.cronjob import CronJobController
from kcm.reconcile.plan import Event, Plan
from kcm.testing.builders import START
from kcm.testing.world import World

HOURLY = "0 * * * *"
SPRING = datetime(2024, 3, 10, 5, tzinfo=UTC)


class Cron:
    """One CronJob and its controller over a world."""

    def __init__(self, cron_job: CronJob, *others: KubeObject, now: datetime = START) -> None:
        self.world = World(cron_job, *others, now=now)
        self.key = cron_job.key
        self.events: list[Event] = []

    @property
    def cron_job(self) -> CronJob:
        obj = self.world.objects["cronjobs.batch", self.key]
        assert isinstance(obj, CronJob)
        return obj

    @property
    def jobs(self) -> list[Job]:
        return [obj for obj in self.world.of(Job) if isinstance(obj, Job)]

    @property
    def names(self) -> list[str]:
        return sorted(job.name for job in self.jobs)

    @property
    def active(self) -> list[str]:
        return [ref.name or "" for ref in self.cron_job.status.active or ()]

    def plan(self) -> Plan:
        return CronJobController().reconcile(self.key, self.world.view())

    def sync(self, at: datetime | None = None) -> Plan:
        self.world.now = at or self.world.now
        plan = self.plan()
        outcome = self.world.carry_out(plan)
        self.events += [*plan.events, *(plan.events_after(outcome))]
        return plan

    def run(self, until: datetime) -> None:
        """Sync whenever the controller asked to."""
        while True:
            plan = self.sync()
            assert plan.requeue_after is not None
            after = self.world.now + timedelta(seconds=plan.requeue_after)
            if after > until:
                return
            self.world.now = after

    def end(self, job: Job, type_: str = "Complete", at: datetime | None = None) -> None:
        moment = at or self.world.now
        condition = JobCondition(type=type_, status="True", last_transition_time=moment)
        status = job.status.replace(
            conditions=[condition],
            start_time=job.metadata.creation_timestamp,
            completion_time=moment if type_ == "Complete" else None,
        )
        self.world.put(job.with_status(status))

    def reasons(self) -> list[str]:
        return [event.reason for event in self.events]


def at(text: str) -> datetime:
    """A time on the first days of 2024."""
    return datetime.fromisoformat(f"2024-01-{text}").replace(tzinfo=UTC)


def of_minute(moment: datetime) -> str:
    return f"nightly-{int(moment.timestamp()) // 60}"


# --- starting
