"""Tests that finished Jobs are deleted once their TTL is over, and not before."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from kcm.api.batch_v1 import Job, JobCondition
from kcm.controllers.ttlafterfinished import DURATION, TTLAfterFinishedController
from kcm.reconcile.plan import Delete, Plan
from kcm.testing.builders import START, job
from kcm.testing.views import NOW, FakeView
from kcm.testing.world import World


def build_ended_job(
    type_: str = "Complete", *, ago: float = 0, status: str = "True", **spec: Any
) -> Job:
    moment = NOW - timedelta(seconds=ago)
    condition = JobCondition(type=type_, status=status, last_transition_time=moment)
    return job(status={"conditions": [condition], "start_time": START}, **spec)


def plan_of(job: Job) -> Plan:
    return TTLAfterFinishedController().reconcile(job.key, FakeView(job))


@pytest.mark.parametrize("type_", ["Complete", "Failed"])
@pytest.mark.parametrize("ago", [10, 11, 10**6])
def test_a_job_whose_time_is_over_is_deleted_with_its_pods(type_: str, ago: int) -> None:
    job = build_ended_job(type_, ago=ago, ttl_seconds_after_finished=10)
    (write,) = plan_of(job).writes
    assert isinstance(write, Delete)
    assert write.options.propagation_policy == "Foreground"
    assert (write.options.uid, write.options.resource_version) == (job.uid, "1")


def test_a_job_whose_time_is_not_over_comes_back_then() -> None:
    plan = plan_of(build_ended_job(ago=4, ttl_seconds_after_finished=10))
    assert (plan.writes, plan.requeue_after) == ([], 6)


def test_a_job_that_says_it_ended_at_the_end_of_time_is_left_alone() -> None:
    job = build_ended_job(ago=(NOW - datetime(9999, 12, 31, tzinfo=UTC)).total_seconds())
    plan = plan_of(job.replace(spec=job.spec.replace(ttl_seconds_after_finished=2**31 - 1)))
    assert plan.writes == []
    assert plan.requeue_after is not None


def test_a_ttl_of_0_deletes_at_once() -> None:
    assert plan_of(build_ended_job(ttl_seconds_after_finished=0)).writes


@pytest.mark.parametrize(
    "owner",
    [
        build_ended_job(ago=100),
        build_ended_job("Suspended", ago=100, ttl_seconds_after_finished=1),
        build_ended_job("FailureTarget", ago=100, ttl_seconds_after_finished=1),
        build_ended_job(status="False", ago=100, ttl_seconds_after_finished=1),
        job(ttl_seconds_after_finished=1),
        build_ended_job(
            ago=100, ttl_seconds_after_finished=1, metadata={"deletion_timestamp": NOW}
        ),
    ],
    ids=["no ttl", "suspended", "not yet failed", "not complete", "running", "going"],
)
def test_other_jobs_are_left_alone(owner: Job) -> None:
    plan = plan_of(owner)
    assert (plan.writes, plan.requeue_after) == ([], None)


def test_a_job_that_is_gone_is_done_with() -> None:
    assert TTLAfterFinishedController().reconcile("default/x", FakeView()).writes == []


def test_an_end_without_a_time_is_an_error() -> None:
    condition = JobCondition(type="Complete", status="True")
    plan = plan_of(job(status={"conditions": [condition]}, ttl_seconds_after_finished=1))
    assert "unable to find the time" in str(plan.error)


def test_a_ttl_that_was_prolonged_meanwhile_saves_the_job() -> None:
    stale = build_ended_job(ago=20, ttl_seconds_after_finished=10)
    prolonged = stale.with_spec(stale.spec.replace(ttl_seconds_after_finished=10**6))
    world = World(prolonged.with_metadata(resource_version="2"))
    world.carry_out(plan_of(stale))
    assert len(world.failures) == 1
    assert world.of(Job)


def test_how_late_a_job_went_is_counted() -> None:
    job = build_ended_job(ago=12, ttl_seconds_after_finished=10)
    plan = plan_of(job)
    assert plan.counts_after(World(job).carry_out(plan)) == DURATION.observe(2)
