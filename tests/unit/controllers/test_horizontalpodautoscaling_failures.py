"""Tests autoscalers whose metrics or targets cannot be read."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from kcm import errors
from kcm.reconcile.plan import Failure, Outcome
from tests.unit.controllers.autoscaling import (
    FakeMetrics,
    autoscaler,
    cpu,
    external,
    of_pods,
    of_service,
)
from tests.unit.controllers.autoscaling_syncs import (
    PODS,
    carry_out,
    compute_outcome,
    conditions,
    message,
    replicas_of,
    sync,
    three,
    web,
)

# --- several metrics

HITS = of_pods("hits", "10")
NO_HITS = "unable to get metric hits: no metrics returned from custom metrics API"


def test_of_several_metrics_the_one_that_asks_for_most_counts() -> None:
    metrics = replace(three(50), custom={"hits": {f"p{n}": "20" for n in range(3)}})
    replicas, new, _ = carry_out(sync(autoscaler(cpu(30), HITS), metrics))
    assert replicas == 6
    assert message(new, "ScalingActive") == (
        "the HPA was able to successfully calculate a replica count from pods metric hits"
    )


@pytest.mark.parametrize("metrics", [(cpu(80), HITS), (HITS, cpu(80))])
def test_upstream_99514_a_failed_metric_never_lets_the_others_scale_down(
    metrics: tuple[dict[str, Any], dict[str, Any]],
) -> None:
    plan = sync(autoscaler(*metrics), three(10))
    replicas, new, _ = carry_out(plan)
    assert replicas is None
    assert conditions(new)["ScalingActive"] == ("False", "FailedGetPodsMetric")
    assert [(event.reason, event.message) for event in plan.events] == [
        ("FailedGetPodsMetric", NO_HITS),
        (
            "FailedComputeMetricsReplicas",
            f"invalid metrics (1 invalid out of 2), first error is: failed to get pods metric "
            f"value: {NO_HITS}",
        ),
    ]
    assert plan.requeue_after == 15.0


def test_with_a_failed_metric_the_others_may_still_scale_up() -> None:
    plan = sync(autoscaler(cpu(30), HITS), three(50))
    replicas, new, _ = carry_out(plan)
    assert replicas == 5
    assert conditions(new)["ScalingActive"] == ("True", "ValidMetricFound")
    assert [event.reason for event in plan.events] == ["FailedGetPodsMetric"]
    assert new is not None
    assert [status.type for status in new.status.current_metrics or ()] == ["Resource", ""]


@pytest.mark.parametrize(
    ("metric", "reason", "why"),
    [
        (
            cpu(50),
            "FailedGetResourceMetric",
            "failed to get cpu utilization: unable to get metrics for resource cpu: no metrics "
            "returned from resource metrics API",
        ),
        (
            of_service("hits", type="Value", value="1"),
            "FailedGetObjectMetric",
            "unable to get metric hits: Service on default web/unable to fetch metrics from custom "
            "metrics API: the server could not find the metric hits for services web",
        ),
        (
            external("length", {"matchLabels": {"a": "b"}}, type="Value", value="1"),
            "FailedGetExternalMetric",
            "unable to get external metric default/length/&LabelSelector{"
            "MatchLabels:map[string]string{a: b,},MatchExpressions:[]LabelSelectorRequirement{},}: "
            "no metrics returned from external metrics API",
        ),
        (
            {
                "type": "ContainerResource",
                "containerResource": {
                    "name": "cpu",
                    "container": "app",
                    "target": {"type": "AverageValue", "averageValue": "1"},
                },
            },
            "FailedGetContainerResourceMetric",
            "failed to get cpu usage: unable to get metrics for resource cpu: no metrics returned "
            "from resource metrics API",
        ),
    ],
)
def test_a_metric_that_cannot_be_had_is_told_and_looked_at_again(
    metric: dict[str, Any], reason: str, why: str
) -> None:
    plan = sync(autoscaler(metric), FakeMetrics())
    replicas, new, _ = carry_out(plan)
    assert replicas is None
    assert conditions(new)["ScalingActive"] == ("False", reason)
    unable = f"the HPA was unable to compute the replica count: {why}"
    assert message(new, "ScalingActive") == unable
    assert (plan.events[0].reason, plan.events[0].message) == (reason, why)
    assert (plan.error, plan.requeue_after) == (None, 15.0)


def test_a_metrics_api_that_does_not_answer_is_a_metric_that_cannot_be_had() -> None:
    metrics = FakeMetrics(failure=errors.StoreUnavailable("it is away"))
    _, new, _ = carry_out(sync(autoscaler(cpu(50)), metrics))
    assert conditions(new)["ScalingActive"] == ("False", "FailedGetResourceMetric")


# --- targets that cannot be scaled


@pytest.mark.parametrize(
    ("reference", "why"),
    [
        (
            {"apiVersion": "apps/v1", "kind": "Deployment", "name": "other"},
            'deployments/scale.apps "other" not found',
        ),
        (
            {"apiVersion": "apps/v1", "kind": "Thing", "name": "web"},
            'no matches for kind "Thing" in group "apps"',
        ),
        (
            {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "web"},
            "the server could not find the requested resource",
        ),
        (
            {"apiVersion": "a/b/c", "kind": "Deployment", "name": "web"},
            "unexpected GroupVersion string: a/b/c",
        ),
    ],
)
def test_a_target_that_is_not_there_or_has_no_scale_is_told(
    reference: dict[str, str], why: str
) -> None:
    plan = sync(autoscaler(cpu(50), scaleTargetRef=reference), three(50))
    _, new, _ = carry_out(plan)
    assert conditions(new) == {"AbleToScale": ("False", "FailedGetScale")}
    assert message(new, "AbleToScale") == (
        f"the HPA controller was unable to get the target's current scale: {why}"
    )
    assert [(event.reason, event.message) for event in plan.events] == [("FailedGetScale", why)]


def test_two_autoscalers_of_the_same_pods_both_stand_still() -> None:
    other = autoscaler(cpu(30)).with_metadata(name="a", uid="another")
    plan = sync(autoscaler(cpu(30)), three(50), web(), PODS, other)
    replicas, new, _ = carry_out(plan)
    assert replicas is None
    assert conditions(new)["ScalingActive"] == ("False", "AmbiguousSelector")
    assert message(new, "ScalingActive") == (
        "pods by selector app=web are controlled by multiple HPAs: [default/a default/web]"
    )


def test_a_target_without_a_selector_is_told() -> None:
    target = web(selector=None)
    plan = sync(autoscaler(cpu(30)), three(50), target)
    assert conditions(carry_out(plan)[1])["ScalingActive"] == ("False", "InvalidSelector")
    assert plan.events[0].reason == "SelectorRequired"


def test_a_target_that_cannot_be_written_is_told_and_tried_again() -> None:
    plan = sync(autoscaler(cpu(30)), three(50))
    refused = errors.Forbidden("by somebody")
    outcome = Outcome(failures=[Failure(plan.writes[0], refused)])
    update: Any = plan.status_after(outcome)
    assert conditions(update.new)["AbleToScale"] == ("False", "FailedUpdateScale")
    assert update.new.status.last_scale_time is None
    [event] = plan.events_after(outcome)
    assert event.reason == "FailedRescale"
    assert event.message.endswith("error: by somebody")


def test_a_target_that_somebody_else_scaled_meanwhile_is_left_alone() -> None:
    policy = {"type": "Pods", "value": 9, "periodSeconds": 60}
    hpa = autoscaler(cpu(30), behavior={"scaleUp": {"policies": [policy]}})
    plan = sync(hpa, three(50))
    outcome = compute_outcome(plan, meanwhile=web(0))
    assert [replicas_of(obj) for _, obj in outcome.done] == [0]
    assert plan.plan_after is not None
    assert plan.events_after(outcome) == []
    assert "up" not in (plan.plan_after(outcome).state or {})
    update: Any = plan.status_after(outcome)
    assert conditions(update.new)["AbleToScale"] == ("True", "ReadyForNewScale")
    assert update.new.status.last_scale_time is None
