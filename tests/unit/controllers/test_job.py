"""Tests of Jobs: how many pods they create, how they finish, and their status meanwhile."""

from __future__ import annotations

from datetime import timedelta

import pytest

from kcm.api.batch_v1 import CONTROLLER_UID, JOB_NAME, TRACKING_FINALIZER, Job
from kcm.api.core_v1 import Container, ContainerStatus, Pod
from kcm.apimachinery.ownership import controller_of
from kcm.controllers.job import JobController
from kcm.controllers.job.controller import job_keys, pod_keys
from kcm.controllers.job.removal import choose_pods_to_remove
from kcm.reconcile.contract import Change
from kcm.reconcile.plan import Delete, Patch
from kcm.testing import builders
from kcm.testing.builders import job, pod
from kcm.testing.views import NOW, FakeView
from tests.unit.controllers.jobs import Jobs, build_indexed_job, of_reason

NEW = "CompletionsReached"


# --- how many pods


@pytest.mark.parametrize(
    ("parallelism", "completions", "expected"),
    [(2, 5, 2), (5, 2, 2), (3, None, 3), (0, 5, 0), (1, 0, 0), (600, 600, 500)],
)
def test_no_more_pods_run_than_are_allowed_or_needed(
    parallelism: int, completions: int | None, expected: int
) -> None:
    jobs = Jobs(job(parallelism=parallelism, completions=completions))
    jobs.sync()
    assert len(jobs.active) == expected
    assert (jobs.status.active or 0) == expected


def test_a_pod_is_the_jobs_own_and_waits_to_be_counted() -> None:
    jobs = Jobs(job())
    jobs.sync()
    (pod,) = jobs.pods
    assert pod.name.startswith("work-")
    assert pod.metadata.finalizers == [TRACKING_FINALIZER]
    assert pod.labels[JOB_NAME] == "work"
    assert pod.labels[CONTROLLER_UID] == jobs.job.uid
    owner = controller_of(pod)
    assert owner is not None
    assert owner.uid == jobs.job.uid
    assert jobs.reasons() == ["SuccessfulCreate"]
    assert jobs.status.start_time == NOW


def test_a_job_runs_until_enough_have_succeeded() -> None:
    jobs = Jobs(job(parallelism=2, completions=5))
    for _ in range(3):
        jobs.sync()
        assert len(jobs.active) <= 2
        jobs.succeed(*jobs.active)
        jobs.step(5)
    jobs.settle()
    assert jobs.counts() == (0, 5, 0)
    assert jobs.conditions() == {"SuccessCriteriaMet": NEW, "Complete": NEW}
    assert jobs.status.completion_time == jobs.world.now
    assert jobs.left == []
    assert jobs.reasons()[-1] == "Completed"


def test_what_is_to_be_stands_in_the_status_before_it_is() -> None:
    jobs = Jobs(job())
    jobs.sync()
    jobs.succeed(*jobs.active)
    jobs.statuses.clear()
    jobs.settle()
    types = [[c.type for c in status.conditions or ()] for status in jobs.statuses]
    assert types == [["SuccessCriteriaMet"], ["SuccessCriteriaMet", "Complete"]]
    uncounted = [status.uncounted_terminated_pods for status in jobs.statuses]
    assert [len(obj.succeeded or ()) for obj in uncounted if obj] == [1, 0]


def test_a_work_queue_is_done_when_one_succeeds_and_all_have_ended() -> None:
    jobs = Jobs(job(parallelism=3, completions=None))
    jobs.sync()
    one, *others = jobs.active
    jobs.succeed(one)
    jobs.settle()
    assert jobs.counts() == (2, 1, 0)
    jobs.fail(others[0])
    jobs.settle()
    assert jobs.counts() == (1, 1, 1)  # none is made for the one that failed
    jobs.succeed(others[1])
    jobs.settle()
    assert "Complete" in jobs.conditions()


def test_less_parallelism_ends_pods_that_do_not_count_as_failed() -> None:
    jobs = Jobs(job(parallelism=5, completions=10))
    jobs.sync()
    jobs.change(parallelism=2)
    jobs.settle()
    assert jobs.counts() == (2, 0, 0)
    assert len(list(of_reason(jobs.events, "SuccessfulDelete"))) == 3
    jobs.change(parallelism=4)
    jobs.settle()
    assert jobs.counts() == (4, 0, 0)


def test_pods_that_are_missed_least_go_first() -> None:
    running = pod("a", phase="Running", ready=True, node="n1")
    not_ready = pod("b", phase="Running", node="n1")
    pending = pod("c", node="n1")
    unplaced = pod("d")
    pods = choose_pods_to_remove(job(), [running, not_ready, pending, unplaced], 4)
    assert [one.name for one in pods] == ["d", "c", "b", "a"]


def test_of_pods_alike_those_go_first_whose_sidecars_were_started_most() -> None:
    """Upstream's TestSortingActivePods of pkg/controller, as it is since 1.32."""
    sidecar = Container(name="s", image="s", restart_policy="Always")

    def build_restarted_pod(name: str, restarts: int, of_sidecar: int) -> Pod:
        one = pod(name, node="n1", phase="Running")
        one = one.with_spec(one.spec.replace(init_containers=[sidecar]))
        status = one.status.replace(
            container_statuses=[ContainerStatus(name="c", restart_count=restarts)],
            init_container_statuses=[ContainerStatus(name="s", restart_count=of_sidecar)],
        )
        return one.with_status(status)

    pods = [
        build_restarted_pod("a", 1, 0),
        build_restarted_pod("b", 1, 5),
        build_restarted_pod("c", 2, 0),
    ]
    assert [one.name for one in choose_pods_to_remove(job(), pods, 3)] == ["c", "b", "a"]


def test_ready_and_terminating_pods_are_told() -> None:
    jobs = Jobs(job(parallelism=3, completions=3))
    jobs.sync()
    jobs.place()
    jobs.sync()
    assert (jobs.status.ready, jobs.status.terminating) == (3, 0)
    jobs.world.delete(jobs.active[0])
    jobs.sync()
    # The one that ends is replaced at once, and counts as failed.
    assert (jobs.status.ready, jobs.status.terminating) == (2, 1)


def test_a_deleted_pod_counts_as_failed_and_is_replaced() -> None:
    jobs = Jobs(job())
    jobs.sync()
    jobs.world.delete(jobs.active[0])
    jobs.sync()
    assert jobs.counts() == (0, 0, 1)
    jobs.step(11)
    jobs.settle()
    assert jobs.counts() == (1, 0, 1)


# --- suspension


def test_a_suspended_job_starts_nothing_until_it_is_resumed() -> None:
    jobs = Jobs(job(suspend=True, parallelism=2, completions=2))
    jobs.settle()
    assert jobs.pods == []
    assert jobs.status.start_time is None
    assert jobs.conditions() == {"Suspended": "JobSuspended"}
    jobs.step(100)
    jobs.change(suspend=False)
    jobs.settle()
    assert len(jobs.active) == 2
    assert jobs.status.start_time == jobs.world.now
    assert jobs.conditions() == {}
    assert [r for r in jobs.reasons() if r.endswith("ed")] == ["Suspended", "Resumed"]


def test_suspension_ends_pods_without_counting_them_and_the_deadline_starts_anew() -> None:
    jobs = Jobs(job(parallelism=2, completions=2, active_deadline_seconds=60))
    jobs.settle()
    jobs.place()
    jobs.step(50)
    jobs.change(suspend=True)
    jobs.settle()
    assert jobs.active == []
    assert (jobs.counts(), jobs.status.terminating) == ((0, 0, 0), 2)
    jobs.end()
    jobs.settle()
    jobs.step(100)
    jobs.change(suspend=False)
    plan = jobs.sync()
    assert (jobs.counts(), plan.requeue_after) == ((2, 0, 0), 60)


# --- the deadline


def test_a_job_that_takes_too_long_fails() -> None:
    jobs = Jobs(job(active_deadline_seconds=60))
    assert jobs.sync().requeue_after == 60
    jobs.place()
    jobs.step(60)
    jobs.sync()
    assert jobs.conditions() == {"FailureTarget": "DeadlineExceeded"}
    jobs.end()
    jobs.settle()
    assert list(jobs.conditions()) == ["FailureTarget", "Failed"]
    assert jobs.counts() == (0, 0, 1)
    assert list(of_reason(jobs.events, "DeadlineExceeded")) == [
        "Job was active longer than specified deadline"
    ]


def test_a_job_ends_no_sooner_than_its_last_pod() -> None:
    jobs = Jobs(job(active_deadline_seconds=0, metadata={"creation_timestamp": NOW}))
    jobs.sync()
    assert jobs.pods == []
    assert list(jobs.conditions()) == ["FailureTarget", "Failed"]

    jobs = Jobs(job(active_deadline_seconds=10))
    jobs.sync()
    jobs.place()
    jobs.step(10)
    jobs.settle()
    assert (list(jobs.conditions()), jobs.status.terminating) == (["FailureTarget"], 1)
    jobs.end()
    jobs.settle()
    assert list(jobs.conditions()) == ["FailureTarget", "Failed"]


# --- who manages what


def test_a_matching_orphan_is_adopted_and_counted() -> None:
    owner = job()
    orphan = pod("lost", labels=owner.spec.template.metadata.labels, phase="Succeeded")
    jobs = Jobs(owner, orphan)
    jobs.settle()
    assert jobs.counts() == (0, 1, 0)
    (new_pod,) = jobs.pods
    assert controller_of(new_pod) is not None
    assert jobs.left == []


def test_a_job_of_another_controller_is_left_alone() -> None:
    jobs = Jobs(job(managed_by="example.com/queue"))
    jobs.settle()
    assert (jobs.pods, jobs.status.start_time) == ([], None)
    jobs = Jobs(job(managed_by="kubernetes.io/job-controller"))
    jobs.settle()
    assert len(jobs.pods) == 1


def test_a_job_that_is_deleted_makes_no_pods_and_lets_the_others_go() -> None:
    jobs = Jobs(job(metadata={"finalizers": ["foregroundDeletion"]}))
    jobs.sync()
    jobs.world.delete(jobs.job)
    jobs.settle()
    assert (len(jobs.pods), jobs.left) == (1, [])


def test_issue_108752_pods_of_a_job_that_is_gone_lose_the_finalizer() -> None:
    owner = job()
    pod = builders.pod("p", owner=owner, metadata={"finalizers": [TRACKING_FINALIZER]})
    view = FakeView(pod)
    (of_pod,) = pod_keys(Change(None, pod), view)
    _, of_job = job_keys(Change(owner, None), view)
    assert of_pod == of_job
    (write,) = JobController().reconcile(of_job, view).writes
    assert isinstance(write, Patch)
    assert not write.change(pod).metadata.finalizers


def test_issue_108752_pods_without_an_owner_lose_the_finalizer_unless_they_are_adopted() -> None:
    orphan = builders.pod("p", metadata={"finalizers": [TRACKING_FINALIZER, "other/x"]})
    (key,) = pod_keys(Change(None, orphan), FakeView(orphan))
    (write,) = JobController().reconcile(key, FakeView(orphan)).writes
    assert isinstance(write, Patch)
    assert write.change(orphan).metadata.finalizers == ["other/x"]
    adopted = builders.pod("p", owner=job(), metadata={"finalizers": [TRACKING_FINALIZER]})
    assert write.change(adopted) is adopted


def test_pods_of_other_owners_and_of_present_jobs_are_no_strays() -> None:
    owner = job()
    finalizers = {"finalizers": [TRACKING_FINALIZER]}
    mine = builders.pod("p", owner=owner, metadata=finalizers)
    sets = builders.pod("q", owner=builders.replica_set(), metadata=finalizers)
    view = FakeView(owner, mine, sets)
    assert list(pod_keys(Change(None, mine), view)) == [owner.key]
    assert list(pod_keys(Change(None, sets), view)) == []
    key = f"strays/default/{owner.uid}"
    assert JobController().reconcile(key, view).writes == []


def test_a_finished_job_takes_finalizers_off_that_are_left() -> None:
    done = {"conditions": [{"type": "Complete", "status": "True"}]}
    owner = job(status=done)
    left = builders.pod("p", owner=owner, metadata={"finalizers": [TRACKING_FINALIZER]})
    jobs = Jobs(owner, left)
    jobs.settle()
    assert (jobs.left, jobs.counts()) == ([], (0, 0, 0))


def test_an_unknown_completion_mode_is_told() -> None:
    plan = JobController().reconcile("default/work", FakeView(job(completion_mode="Odd")))
    assert ([event.reason for event in plan.events], plan.writes) == (["UnknownCompletionMode"], [])


# --- replacement policy


def test_a_pod_is_replaced_no_sooner_than_it_has_ended_where_the_job_says_so() -> None:
    jobs = Jobs(job(pod_replacement_policy="Failed", backoff_limit=3))
    jobs.sync()
    jobs.place()
    jobs.world.delete(jobs.active[0])
    jobs.settle()
    assert (jobs.counts(), jobs.status.terminating) == ((0, 0, 0), 1)
    jobs.step(30)
    jobs.end()
    jobs.step(30)
    jobs.settle()
    assert jobs.counts() == (1, 0, 1)


def test_an_index_is_not_given_anew_while_its_pod_ends_where_the_job_says_so() -> None:
    jobs = Jobs(build_indexed_job(3, pod_replacement_policy="Failed"))
    jobs.sync()
    jobs.place()
    jobs.world.delete(jobs.at(1))
    jobs.settle()
    assert jobs.indexes() == [0, 2]


def test_a_delete_that_found_nothing_is_no_event() -> None:
    jobs = Jobs(job(parallelism=2, completions=2))
    jobs.sync()
    jobs.change(parallelism=1)
    plan = jobs.plan()
    for other in jobs.pods:
        jobs.world.remove(jobs.world.objects["pods", other.key])
    outcome = jobs.world.carry_out(plan)
    assert [e.reason for e in plan.events_after(outcome)] == []
    assert any(isinstance(write, Delete) for write, _ in outcome.done)


def test_ages_do_not_matter_to_a_job_without_limits() -> None:
    old: Job = job(metadata={"creation_timestamp": NOW - timedelta(days=400)})
    jobs = Jobs(old)
    assert jobs.sync().requeue_after is None
    assert isinstance(jobs.pods[0], Pod)


def read_counts(jobs: Jobs, metric: str) -> dict[str, int]:
    prefix = f"job_controller_{metric}|"
    return {k.removeprefix(prefix): n for k, n in jobs.counted.items() if k.startswith(prefix)}


def test_pods_and_ends_are_counted_once() -> None:
    jobs = Jobs(job(parallelism=1, completions=2, backoff_limit=1))
    jobs.settle()
    jobs.fail(*jobs.active)
    jobs.settle()
    jobs.step(60)
    for _ in range(2):
        jobs.settle()
        jobs.succeed(*jobs.active)
    jobs.settle()
    assert jobs.conditions().keys() == {"SuccessCriteriaMet", "Complete"}
    assert read_counts(jobs, "jobs_finished") == {"NonIndexed|succeeded|CompletionsReached": 1}
    assert read_counts(jobs, "job_pods_finished") == {
        "NonIndexed|succeeded": 2,
        "NonIndexed|failed": 1,
    }
    assert read_counts(jobs, "job_pods_creation") == {
        "new|succeeded": 1,
        "recreate_terminating_or_failed|succeeded": 2,
    }


def test_a_job_that_fails_is_counted_with_its_reason() -> None:
    jobs = Jobs(job(completions=1, backoff_limit=0))
    jobs.settle()
    jobs.fail(*jobs.active)
    jobs.settle()
    assert read_counts(jobs, "jobs_finished") == {"NonIndexed|failed|BackoffLimitExceeded": 1}
