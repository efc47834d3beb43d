"""Tests that a Job counts each finished pod exactly once, wherever a sync is interrupted."""

from __future__ import annotations

import random

import pytest

from kcm.api.batch_v1 import Job, JobStatus, UncountedTerminatedPods
from kcm.controllers.job.tracking import MOST_UNCOUNTED, settle_uncounted
from kcm.kinds.validation.batch import job_status
from kcm.testing.builders import job
from tests.unit.controllers.jobs import CrashError, Jobs, build_indexed_job


@pytest.mark.parametrize(
    ("tracked", "expected"),
    [
        ([], (3, 2, None, None)),
        (["a", "c"], (2, 1, ["a"], ["c"])),
        (["a", "b", "c"], (1, 1, ["a", "b"], ["c"])),
    ],
)
def test_what_lost_the_finalizer_is_counted(
    tracked: list[str], expected: tuple[object, ...]
) -> None:
    uncounted = UncountedTerminatedPods(succeeded=["a", "b"], failed=["c"])
    before = JobStatus(succeeded=1, failed=1, uncounted_terminated_pods=uncounted)
    status = settle_uncounted(before, frozenset(tracked))
    left = status.uncounted_terminated_pods
    assert left is not None
    assert (status.succeeded, status.failed, left.succeeded, left.failed) == expected


def sync_and_crash(jobs: Jobs, behind: int) -> None:
    try:
        jobs.sync(writes=behind)
    except CrashError:
        return


@pytest.mark.parametrize("behind", range(9))
@pytest.mark.parametrize(
    "owner",
    [job(parallelism=4, completions=4, backoff_limit=6), build_indexed_job(4, backoff_limit=6)],
    ids=["plain", "indexed"],
)
def test_issue_105200_a_pod_is_counted_once_although_a_sync_breaks_off(
    behind: int, owner: Job
) -> None:
    jobs = Jobs(owner)
    jobs.sync()
    one, two, three, four = jobs.active
    jobs.succeed(one, two)
    jobs.fail(three)
    sync_and_crash(jobs, behind)
    sync_and_crash(jobs, behind)
    jobs.settle()
    # The failure is no younger than the successes, so its replacement does not wait.
    assert jobs.counts() == (2, 2, 1)
    assert four.name in jobs.left
    assert len(jobs.left) == 2


@pytest.mark.parametrize("behind", range(7))
def test_a_failing_job_counts_those_that_it_ends_once_although_syncs_break_off(behind: int) -> None:
    jobs = Jobs(job(parallelism=3, completions=3, backoff_limit=0))
    jobs.sync()
    jobs.place()
    jobs.fail(jobs.active[0])
    sync_and_crash(jobs, behind)
    sync_and_crash(jobs, behind)
    jobs.settle()
    jobs.end()
    jobs.settle()
    assert (jobs.counts(), jobs.left) == ((0, 0, 3), [])
    assert "Failed" in jobs.conditions()


def test_a_pod_that_vanishes_while_it_is_named_in_the_status_is_counted() -> None:
    jobs = Jobs(job(completions=2, parallelism=1))
    jobs.sync()
    (pod,) = jobs.active
    jobs.succeed(pod)
    sync_and_crash(jobs, 1)  # the status names it
    assert jobs.status.uncounted_terminated_pods == UncountedTerminatedPods(succeeded=[pod.uid])
    jobs.world.remove(pod)  # somebody took the finalizer off and deleted it
    jobs.sync()
    assert jobs.counts() == (1, 1, 0)


def test_counts_never_exceed_what_ended_at_any_time() -> None:
    jobs = Jobs(job(parallelism=3, completions=3))
    jobs.sync()
    jobs.succeed(*jobs.active)
    jobs.statuses.clear()
    jobs.settle()
    for status in jobs.statuses:
        uncounted = status.uncounted_terminated_pods or UncountedTerminatedPods()
        assert (status.succeeded or 0) + len(uncounted.succeeded or ()) == 3


def test_issue_109486_no_job_ends_while_a_pod_is_not_counted() -> None:
    jobs = Jobs(job())
    jobs.sync()
    jobs.succeed(*jobs.active)
    sync_and_crash(jobs, 1)
    assert "Complete" not in jobs.conditions()
    assert jobs.left
    jobs.settle()
    assert ("Complete" in jobs.conditions(), jobs.left) == (True, [])


def test_very_many_pods_are_counted_over_several_syncs() -> None:
    count = MOST_UNCOUNTED + 20
    jobs = Jobs(job(parallelism=count, completions=count))
    jobs.settle()
    jobs.succeed(*jobs.active)
    jobs.sync()
    assert jobs.counts()[1] == MOST_UNCOUNTED
    assert "Complete" not in jobs.conditions()
    jobs.settle()
    assert jobs.counts() == (0, count, 0)
    assert "Complete" in jobs.conditions()


@pytest.mark.parametrize("seed", range(25))
def test_any_course_of_events_ends_with_exact_counts(seed: int) -> None:
    rng = random.Random(seed)
    limit = {"backoff_limit_per_index": 50} if rng.random() < 0.3 else {"backoff_limit": 500}
    owner: Job = (
        build_indexed_job(12, 4, **limit) if seed % 2 else job(parallelism=4, completions=12)
    )
    jobs = Jobs(owner if seed % 2 else job(parallelism=4, completions=12, backoff_limit=500))
    ended = {"Succeeded": 0, "Failed": 0}
    for _ in range(300):
        sync_and_crash(jobs, rng.randrange(12))
        for pod in jobs.active:
            if rng.random() < 0.3:
                ended["Succeeded"] += 1
                jobs.succeed(pod)
            elif rng.random() < 0.2:
                ended["Failed"] += 1
                jobs.fail(pod)
        jobs.step(rng.choice((1, 700)))
    for _ in range(20):
        jobs.succeed(*jobs.active)
        ended["Succeeded"] += len(jobs.active)
        jobs.settle()
        jobs.step(700)
    assert "Complete" in jobs.conditions()
    assert jobs.counts() == (0, 12, ended["Failed"])
    assert jobs.left == []
    uncounted = jobs.status.uncounted_terminated_pods
    assert uncounted == UncountedTerminatedPods()


def test_a_job_that_is_done_when_it_is_resumed_has_started_when_it_did() -> None:
    """The start time changes together with the condition only; otherwise the status is refused."""
    jobs = Jobs(build_indexed_job(2))
    jobs.settle()
    jobs.place()
    jobs.succeed(jobs.at(0))
    jobs.settle()
    jobs.change(suspend=True)
    jobs.settle()
    jobs.end()
    jobs.settle()
    jobs.step(100)
    jobs.change(suspend=False, completions=1, parallelism=1)
    old = jobs.job
    jobs.sync()
    assert jobs.status.start_time == old.status.start_time
    assert job_status.update(jobs.job, old) == []
    jobs.settle()
    assert "Complete" in jobs.conditions()
