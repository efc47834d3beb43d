"""Tests of Jobs whose pods fail: backoff limits, backoff delays and pod failure policies."""

from __future__ import annotations

from typing import Any

import pytest

from kcm.api.batch_v1 import PodFailurePolicy
from kcm.controllers.job.backoff import wait_for_any
from kcm.controllers.job.policies import FailureVerdict, judge_failure
from kcm.testing import builders
from kcm.testing.builders import START, container, job, pod
from kcm.testing.views import NOW
from tests.unit.controllers.jobs import Jobs, build_indexed_job, failure_rules, of_reason

POLICY = "PodFailurePolicy"


def policy(*rules: Any) -> dict[str, Any]:
    pod_failure_policy = PodFailurePolicy.model_validate(failure_rules(*rules))
    return {"pod_failure_policy": pod_failure_policy}


def codes(action: str, *values: int, operator: str = "In", name: str | None = None) -> Any:
    return {
        "action": action,
        "onExitCodes": {"containerName": name, "operator": operator, "values": list(values)},
    }


def build_disruption_rule(action: str, status: str = "True") -> Any:
    return {"action": action, "onPodConditions": [{"type": "DisruptionTarget", "status": status}]}


# --- the limit and the delays


def test_a_job_fails_once_more_pods_than_the_limit_have_failed() -> None:
    jobs = Jobs(job(backoff_limit=2))
    for failures in range(3):
        jobs.sync()
        assert jobs.counts() == (1, 0, failures)
        jobs.fail(*jobs.active)
        jobs.sync()
        jobs.step(600)
    jobs.settle()
    assert jobs.counts() == (0, 0, 3)
    assert jobs.conditions() == dict.fromkeys(("FailureTarget", "Failed"), "BackoffLimitExceeded")
    assert list(of_reason(jobs.events, "BackoffLimitExceeded")) == [
        "Job has reached the specified backoff limit"
    ]
    assert jobs.status.completion_time is None


def test_with_a_limit_of_0_the_first_failure_ends_all_other_pods() -> None:
    jobs = Jobs(job(parallelism=3, completions=3, backoff_limit=0))
    jobs.sync()
    jobs.place()
    jobs.fail(jobs.active[0])
    jobs.sync()
    assert (jobs.counts(), jobs.status.terminating) == ((0, 0, 3), 2)
    jobs.end()
    jobs.settle()
    assert "Failed" in jobs.conditions()


@pytest.mark.parametrize(
    ("failures", "delay"),
    [(0, 0), (1, 10), (2, 20), (3, 40), (5, 160), (6, 320), (7, 600), (50, 600)],
)
def test_the_delay_doubles_from_10_seconds_to_10_minutes(failures: int, delay: float) -> None:
    failed = [pod(f"p{n}", phase="Failed", ready=False, ready_since=NOW) for n in range(failures)]
    assert wait_for_any(job(), failed, NOW) == delay


def test_a_success_forgets_the_failures_before_it() -> None:
    failed = [pod(f"p{n}", phase="Failed", ready=False, ready_since=START) for n in range(5)]
    later = pod("later", phase="Failed", ready=False, ready_since=NOW)
    success = pod("s", phase="Succeeded", ready=False, ready_since=START)
    assert wait_for_any(job(), [*failed, success, later], NOW) == 10
    assert wait_for_any(job(), [*failed, success], NOW) == 0


def test_a_pod_is_replaced_once_its_delay_is_over() -> None:
    jobs = Jobs(job(parallelism=2, completions=4))
    jobs.sync()
    jobs.fail(jobs.active[0])
    plan = jobs.sync()
    assert (jobs.counts(), plan.requeue_after) == ((1, 0, 1), 10)
    jobs.step(9)
    assert jobs.sync().requeue_after == 1
    jobs.step(1)
    assert jobs.sync().requeue_after is None
    assert jobs.counts() == (2, 0, 1)


@pytest.mark.parametrize(
    ("limit", "restarts", "fails"), [(0, 0, 0), (0, 1, 1), (3, 2, 0), (3, 3, 1)]
)
def test_restarts_of_containers_are_failures_where_pods_restart_them(
    limit: int, restarts: int, fails: int
) -> None:
    template = job().spec.template
    template = template.replace(spec=template.spec.replace(restart_policy="OnFailure"))
    jobs = Jobs(job(template=template, backoff_limit=limit))
    jobs.sync()
    jobs.place()
    statuses = [{"name": "c", "restartCount": restarts}]
    status = builders.pod(status={"container_statuses": statuses}).status.container_statuses
    jobs.put(jobs.active[0], phase="Running", container_statuses=status)
    jobs.sync()
    assert len(jobs.conditions()) == fails


# --- podFailurePolicy


@pytest.mark.parametrize(
    ("rule", "code", "expected"),
    [
        (codes("Ignore", 3), 3, "Ignore"),
        (codes("Ignore", 3), 4, ""),
        (codes("Count", 1, 3), 3, "Count"),
        (codes("Ignore", 3, operator="NotIn"), 4, "Ignore"),
        (codes("Ignore", 3, operator="NotIn"), 3, ""),
        (codes("Ignore", 3, operator="NotIn"), 0, ""),
        (codes("Ignore", 3, name="c"), 3, "Ignore"),
        (codes("Ignore", 3, name="d"), 3, ""),
        (build_disruption_rule("Ignore"), 3, ""),
    ],
)
def test_rules_match_exit_codes(rule: Any, code: int, expected: str) -> None:
    jobs = Jobs(job(**policy(rule)))
    jobs.sync()
    jobs.fail(*jobs.active, code=code)
    assert judge_failure(jobs.job, jobs.pods[0]).action == expected


def test_the_first_rule_that_matches_decides() -> None:
    owner = job(**policy(codes("Count", 3), codes("FailJob", 3), build_disruption_rule("Ignore")))
    ended = {"name": "c", "state": {"terminated": {"exitCode": 3}}}
    failed = builders.pod(phase="Failed", status={"container_statuses": [ended]})
    assert judge_failure(owner, failed) == FailureVerdict("Count")


def test_ignored_failures_are_replaced_and_not_counted() -> None:
    jobs = Jobs(job(backoff_limit=0, **policy(build_disruption_rule("Ignore"))))
    for _ in range(3):
        jobs.sync()
        jobs.fail(*jobs.active, conditions=[builders.condition("DisruptionTarget")])
        jobs.step(3600)
    jobs.settle()
    assert (jobs.counts(), jobs.conditions()) == ((1, 0, 0), {})


def test_one_failure_can_end_the_job() -> None:
    jobs = Jobs(job(parallelism=2, completions=2, **policy(codes("FailJob", 42))))
    jobs.sync()
    jobs.place()
    failed = jobs.active[0]
    jobs.fail(failed, code=42)
    jobs.sync()
    assert jobs.conditions() == {"FailureTarget": POLICY}
    jobs.end()
    jobs.settle()
    assert jobs.conditions() == {"FailureTarget": POLICY, "Failed": POLICY}
    assert list(of_reason(jobs.events, POLICY)) == [
        f"Container c for pod {failed.key} failed with exit code 42 "
        "matching FailJob rule at index 0"
    ]


def test_a_pod_condition_can_end_the_job() -> None:
    jobs = Jobs(job(**policy(build_disruption_rule("FailJob"))))
    jobs.sync()
    (failed,) = jobs.active
    jobs.fail(failed, conditions=[builders.condition("DisruptionTarget")])
    jobs.settle()
    assert list(of_reason(jobs.events, POLICY)) == [
        f"Pod {failed.key} has condition DisruptionTarget matching FailJob rule at index 0"
    ]


def test_with_a_policy_a_pod_counts_no_sooner_than_it_has_ended() -> None:
    jobs = Jobs(job(**policy(codes("Ignore", 137))))
    jobs.sync()
    jobs.place()
    jobs.world.delete(jobs.active[0])
    jobs.settle()
    assert jobs.counts() == (0, 0, 0)
    jobs.fail(*jobs.pods, code=137)
    jobs.settle()
    assert jobs.counts()[2] == 0


def test_a_suspended_jobs_pods_do_not_delay_it_later() -> None:
    jobs = Jobs(job())
    jobs.sync()
    jobs.place()
    jobs.change(suspend=True)
    jobs.settle()
    jobs.fail(*jobs.pods)
    jobs.change(suspend=False)
    assert jobs.sync().requeue_after is None


# --- limits per index


def test_an_index_fails_by_itself() -> None:
    jobs = Jobs(build_indexed_job(3, backoff_limit_per_index=1))
    for _ in range(2):
        jobs.settle()
        jobs.fail(jobs.at(1))
        jobs.step(700)
    jobs.settle()
    assert jobs.status.failed_indexes == "1"
    assert jobs.indexes() == [0, 2]
    jobs.succeed(*jobs.active)
    jobs.settle()
    assert jobs.conditions() == dict.fromkeys(("FailureTarget", "Failed"), "FailedIndexes")
    assert (jobs.counts(), jobs.status.completed_indexes) == ((0, 2, 2), "0,2")


def test_a_failed_pod_of_an_index_stays_until_its_successor_knows_the_count() -> None:
    jobs = Jobs(build_indexed_job(2, backoff_limit_per_index=3))
    jobs.settle()
    failed = jobs.at(0)
    jobs.fail(failed)
    jobs.settle()
    assert failed.name in jobs.left
    assert jobs.counts() == (1, 0, 0)
    jobs.step(10)
    jobs.settle()
    assert failed.name not in jobs.left
    annotations = jobs.at(0).annotations
    assert annotations["batch.kubernetes.io/job-index-failure-count"] == "1"
    assert jobs.counts() == (2, 0, 1)


def test_indexes_wait_for_themselves_only() -> None:
    jobs = Jobs(build_indexed_job(3, backoff_limit_per_index=5))
    jobs.settle()
    jobs.fail(jobs.at(0))
    jobs.step(5)
    jobs.fail(jobs.at(1))
    assert jobs.sync().requeue_after == 5
    jobs.step(5)
    plan = jobs.sync()
    assert (jobs.indexes(), plan.requeue_after) == ([0, 2], 5)


def test_too_many_failed_indexes_end_the_job() -> None:
    jobs = Jobs(build_indexed_job(4, backoff_limit_per_index=0, max_failed_indexes=1))
    jobs.settle()
    jobs.fail(jobs.at(0))
    jobs.settle()
    assert (jobs.conditions(), jobs.status.failed_indexes) == ({}, "0")
    jobs.fail(jobs.at(2))
    jobs.settle()
    assert jobs.conditions()["Failed"] == "MaxFailedIndexesExceeded"
    assert jobs.status.failed_indexes == "0,2"


def test_a_rule_can_fail_an_index_and_another_ignore_a_failure() -> None:
    rules = policy(codes("FailIndex", 42), codes("Ignore", 7))
    jobs = Jobs(build_indexed_job(2, backoff_limit_per_index=3, **rules))
    jobs.settle()
    jobs.fail(jobs.at(0), code=42)
    jobs.fail(jobs.at(1), code=7)
    jobs.settle()
    jobs.step(10)
    jobs.settle()
    assert (jobs.status.failed_indexes, jobs.indexes()) == ("0", [1])
    annotations = jobs.at(1).annotations
    assert annotations["batch.kubernetes.io/job-index-failure-count"] == "0"
    assert annotations["batch.kubernetes.io/job-index-ignored-failure-count"] == "1"
    assert jobs.counts() == (1, 0, 1)


def test_init_containers_count_too() -> None:
    owner = job(**policy(codes("Ignore", 5, name="i")))
    ended = {"name": "i", "state": {"terminated": {"exitCode": 5}}}
    failed = builders.pod(
        phase="Failed",
        init_containers=[container("i")],
        status={"init_container_statuses": [ended]},
    )
    assert judge_failure(owner, failed).action == "Ignore"
