"""Tests of CronJobs: which Jobs they start when, how they treat earlier Jobs, and their Events."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from kcm import errors
from kcm.api.core_v1 import ObjectReference
from kcm.controllers.cronjob.controller import SKEW
from kcm.reconcile.plan import Create, Failure, Outcome
from kcm.testing.builders import START, cron_job, job
from tests.unit.controllers.cronjobs import HOURLY, SPRING, Cron, at, of_minute


def test_nothing_is_started_before_the_first_time() -> None:
    cron = Cron(cron_job(schedule=HOURLY), now=at("01T00:30"))
    plan = cron.sync()
    assert (cron.names, plan.requeue_after) == ([], 30 * 60 + 0.1)


def test_a_job_is_started_at_its_time_and_the_next_one_an_hour_later() -> None:
    cron = Cron(cron_job(schedule=HOURLY), now=at("01T01:00"))
    plan = cron.sync()
    assert cron.names == [of_minute(at("01T01:00"))]
    assert cron.active == cron.names
    assert cron.cron_job.status.last_schedule_time == at("01T01:00")
    assert (plan.requeue_after, cron.reasons()) == (3600.1, ["SuccessfulCreate"])
    assert cron.sync().writes == []


def test_a_job_is_made_as_its_template_says() -> None:
    template = cron_job().spec.job_template
    meta = template.metadata.replace(labels={"a": "b"}, annotations={"c": "d"})
    new_cron_job = cron_job(
        schedule=HOURLY, job_template=template.replace(metadata=meta), time_zone="Europe/Berlin"
    )
    cron = Cron(new_cron_job, now=at("01T01:00"))
    cron.sync()
    (job,) = cron.jobs
    assert job.labels == {"a": "b"}
    scheduled = "batch.kubernetes.io/cronjob-scheduled-timestamp"
    assert job.annotations == {"c": "d", scheduled: "2024-01-01T02:00:00+01:00"}
    (owner,) = job.metadata.owner_references or []
    assert (owner.uid, owner.controller) == (new_cron_job.uid, True)


def test_a_time_in_utc_is_written_with_a_z() -> None:
    cron = Cron(cron_job(schedule=HOURLY), now=at("01T01:00"))
    cron.sync()
    assert "2024-01-01T01:00:00Z" in cron.jobs[0].annotations.values()


def test_every_time_of_a_day_gets_one_job() -> None:
    owner = cron_job(schedule="*/30 * * * *", successful_jobs_history_limit=None)
    cron = Cron(owner, now=at("01T00:10"))
    cron.run(at("02T00:01"))
    assert len(cron.names) == 48


@pytest.mark.parametrize(
    ("spec", "deleting"),
    [({"suspend": True}, False), ({}, True)],
    ids=["suspended", "deleted"],
)
def test_some_start_nothing(spec: dict[str, Any], deleting: bool) -> None:
    marks = {"deletion_timestamp": START, "finalizers": ["x/y"]} if deleting else {}
    cron = Cron(cron_job(schedule=HOURLY, metadata=marks, **spec), now=at("01T05:00"))
    plan = cron.sync()
    assert (cron.names, plan.requeue_after, cron.reasons()) == ([], None, [])


def test_a_start_that_was_missed_is_made_up_for() -> None:
    cron = Cron(cron_job(schedule=HOURLY), now=at("01T05:20"))
    plan = cron.sync()
    assert cron.names == [of_minute(at("01T05:00"))]  # the latest, not all
    assert plan.requeue_after == 40 * 60 + 0.1


def test_a_start_that_is_too_late_is_left_out() -> None:
    cron = Cron(cron_job(schedule=HOURLY, starting_deadline_seconds=600), now=at("01T05:11"))
    plan = cron.sync()
    assert (cron.names, plan.requeue_after) == ([], 49 * 60 + 0.1)
    cron = Cron(cron_job(schedule=HOURLY, starting_deadline_seconds=600), now=at("01T05:10"))
    cron.sync()
    assert len(cron.names) == 1 or cron.reasons() == []


def test_issue_42649_more_than_100_missed_starts_are_told_and_the_latest_is_made() -> None:
    owner = cron_job(schedule="* * * * *")
    cron = Cron(owner, now=at("02T00:00"))
    cron.sync()
    assert cron.names == [of_minute(at("02T00:00"))]
    assert cron.reasons() == ["TooManyMissedTimes", "SuccessfulCreate"]
    cron.run(at("02T00:05:30"))
    assert len(cron.names) == 6
    assert cron.reasons().count("TooManyMissedTimes") == 1


def test_a_deadline_bounds_what_counts_as_missed() -> None:
    owner = cron_job(schedule="* * * * *", starting_deadline_seconds=200)
    cron = Cron(owner, now=at("02T00:00"))
    cron.sync()
    assert cron.reasons() == ["SuccessfulCreate"]


# --- earlier Jobs


def start_job(**spec: Any) -> Cron:
    """Returns a CronJob whose first Job runs, at the time when the next one is due."""
    cron = Cron(cron_job(schedule=HOURLY, **spec), now=at("01T01:00"))
    cron.sync()
    cron.events.clear()
    cron.world.now = at("01T02:00")
    return cron


def test_jobs_may_run_side_by_side() -> None:
    cron = start_job()
    cron.sync()
    assert cron.active == cron.names == [of_minute(at("01T01:00")), of_minute(at("01T02:00"))]


def test_forbid_leaves_a_start_out_while_the_last_job_runs() -> None:
    cron = start_job(concurrency_policy="Forbid")
    plan = cron.sync()
    assert (len(cron.names), cron.reasons()) == (1, ["JobAlreadyActive"])
    assert plan.requeue_after == 3600.1
    cron.end(cron.jobs[0])
    cron.sync(at("01T02:10"))
    assert len(cron.names) == 2  # late, as no deadline forbids


def test_replace_ends_the_job_that_still_runs() -> None:
    cron = start_job(concurrency_policy="Replace")
    cron.sync()
    assert cron.active == cron.names == [of_minute(at("01T02:00"))]
    assert cron.reasons() == ["SuccessfulDelete", "SuccessfulCreate"]


def test_a_job_that_ended_is_active_no_more() -> None:
    cron = start_job()
    cron.end(cron.jobs[0], at=at("01T01:30"))
    cron.sync(at("01T01:30"))
    assert (cron.active, cron.reasons()) == ([], ["SawCompletedJob"])
    assert cron.events[0].message.endswith("status: Complete")
    assert cron.cron_job.status.last_successful_time == at("01T01:30")
    cron.sync()
    assert len(cron.events) == 1


def test_a_failed_job_is_no_success() -> None:
    cron = start_job()
    cron.end(cron.jobs[0], "Failed")
    cron.sync(at("01T01:30"))
    assert cron.cron_job.status.last_successful_time is None


def test_a_job_that_went_missing_is_active_no_more() -> None:
    cron = start_job(concurrency_policy="Forbid")
    cron.world.remove(cron.world.objects["jobs.batch", cron.jobs[0].key])
    cron.sync()
    assert cron.reasons() == ["MissingJob", "SuccessfulCreate"]


def test_a_job_that_somebody_made_is_told_and_does_not_count() -> None:
    cron = start_job(concurrency_policy="Forbid")
    cron.end(cron.jobs[0])
    manual = job("manual", owner=cron.cron_job)
    cron.world.put(manual)
    cron.sync()
    assert sorted(cron.reasons()) == ["SawCompletedJob", "SuccessfulCreate", "UnexpectedJob"]


def test_a_job_whose_status_was_not_written_is_not_made_twice() -> None:
    cron = Cron(cron_job(schedule=HOURLY), now=at("01T01:00"))
    plan = cron.plan()
    cron.world.write(plan.writes[0])  # and then the worker is killed
    cron.sync(at("01T01:01"))
    assert cron.active == cron.names == [of_minute(at("01T01:00"))]
    assert cron.cron_job.status.last_schedule_time == at("01T01:00")


def test_a_name_that_somebody_elses_job_has_is_left_to_it() -> None:
    other = job(of_minute(at("01T01:00")))
    cron = Cron(cron_job(schedule=HOURLY), other, now=at("01T01:00"))
    plan = cron.sync()
    assert (cron.active, plan.writes, plan.requeue_after) == ([], [], 3600.1)


def test_a_job_that_cannot_be_made_is_told_and_tried_again() -> None:
    owner = cron_job(schedule=HOURLY)
    broken = owner.spec.job_template.spec.replace(parallelism=-1)
    template = owner.spec.job_template.replace(spec=broken)
    cron = Cron(owner.with_spec(owner.spec.replace(job_template=template)), now=at("01T01:00"))
    plan = cron.plan()
    outcome = cron.world.carry_out(plan)
    del outcome
    assert len(cron.world.failures) == 1
    assert cron.cron_job.status.last_schedule_time is None


# --- history


@pytest.mark.parametrize(
    ("limits", "complete", "failed"),
    [((3, 1), 3, 1), ((0, 0), 0, 0), ((None, 2), 5, 2), ((None, None), 5, 4)],
)
def test_the_oldest_jobs_beyond_the_limits_go(
    limits: tuple[int | None, int | None], complete: int, failed: int
) -> None:
    owner = cron_job(suspend=True)
    spec = owner.spec.replace(
        successful_jobs_history_limit=limits[0], failed_jobs_history_limit=limits[1]
    )
    cron = Cron(owner.with_spec(spec))
    for number in range(9):
        type_ = "Complete" if number < 5 else "Failed"
        ended = job(
            f"j{number}", owner=owner, metadata={"creation_timestamp": at(f"0{number + 1}")}
        )
        cron.world.put(ended)
        cron.end(ended, type_)
    cron.sync()
    left = set(cron.names)
    assert left == {f"j{n}" for n in range(5 - complete, 5)} | {
        f"j{n}" for n in range(9 - failed, 9)
    }


def test_running_jobs_are_no_history() -> None:
    cron = start_job(successful_jobs_history_limit=0, failed_jobs_history_limit=0)
    cron.sync()
    assert len(cron.names) == 2


# --- schedules that are odd


@pytest.mark.parametrize(
    ("schedule", "zone", "reason"),
    [
        ("* * * *", None, ["UnparseableSchedule"]),
        ("59 23 31 2 *", None, ["InvalidSchedule"]),
        (HOURLY, "Nowhere/Land", ["UnknownTimeZone"]),
    ],
)
def test_what_only_a_change_mends_is_told_and_not_tried_again(
    schedule: str, zone: str | None, reason: list[str]
) -> None:
    cron = Cron(cron_job(schedule=schedule, time_zone=zone), now=at("01T05:00"))
    plan = cron.sync()
    assert (cron.reasons(), cron.names, plan.requeue_after) == (reason, [], None)


def test_a_zone_in_the_schedule_still_works() -> None:
    cron = Cron(cron_job(schedule="TZ=Asia/Kolkata 0 9 * * *"), now=at("01T03:30"))
    cron.sync()
    assert cron.names == [of_minute(at("01T03:30"))]
    assert "UnsupportedSchedule" in cron.reasons()


# --- clocks


def test_a_clock_that_jumps_ahead_makes_up_for_the_latest_start_only() -> None:
    cron = Cron(cron_job(schedule=HOURLY), now=at("01T01:00"))
    cron.sync()
    cron.sync(at("03T07:30"))
    assert cron.names == [of_minute(at("01T01:00")), of_minute(at("03T07:00"))]


def test_a_clock_that_jumps_back_starts_nothing_twice() -> None:
    cron = Cron(cron_job(schedule=HOURLY), now=at("01T05:00"))
    cron.sync()
    plan = cron.sync(at("01T03:00"))
    assert (len(cron.names), plan.requeue_after) == (1, 3 * 3600 + 0.1)


def test_a_day_of_25_hours_has_25_hourly_starts_and_one_of_23_has_23() -> None:
    for day, starts in ((datetime(2024, 11, 3, 4, tzinfo=UTC), 25), (SPRING, 23)):
        owner = cron_job(
            schedule=HOURLY,
            time_zone="America/New_York",
            successful_jobs_history_limit=None,
            metadata={"creation_timestamp": day - timedelta(seconds=1)},
        )
        cron = Cron(owner, now=day)
        cron.run(day + timedelta(hours=starts - 1, minutes=59))
        assert len(cron.names) == starts


def test_the_list_of_active_jobs_names_them_fully() -> None:
    cron = start_job()
    (object_reference,) = cron.cron_job.status.active or []
    assert isinstance(object_reference, ObjectReference)
    assert (object_reference.api_version, object_reference.kind, object_reference.namespace) == (
        "batch/v1",
        "Job",
        "default",
    )


def test_how_late_a_job_is_made_is_counted() -> None:
    cron = Cron(cron_job(schedule=HOURLY))
    plan = cron.sync(at("01T01:00") + timedelta(seconds=3))
    outcome = Outcome(
        tuple((write, write.obj) for write in plan.writes if isinstance(write, Create))
    )
    assert plan.counts_after(outcome) == SKEW.observe(3)
    assert plan.counts_after(Outcome()) == {}


@pytest.mark.parametrize(
    ("error", "reasons"),
    [(errors.AlreadyExists("jobs x"), []), (errors.NamespaceTerminating("going"), []),
     (errors.Forbidden("quota"), ["FailedCreate"])],
)  # fmt: skip
def test_only_a_refusal_is_told(error: errors.ApiError, reasons: list[str]) -> None:
    """Upstream's TestControllerV2SyncCronJob: the cases in which creating the Job fails."""
    plan = Cron(cron_job(schedule=HOURLY), now=START + timedelta(hours=1)).plan()
    (failure,) = [Failure(write, error) for write in plan.writes if isinstance(write, Create)]
    assert [event.reason for event in plan.events_after(Outcome(failures=[failure]))] == reasons
