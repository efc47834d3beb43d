"""Tests which plan a sync makes for an autoscaler, its target and their metrics."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from kcm import errors
from kcm.apimachinery.meta_v1 import KubeObject
from kcm.controllers.horizontalpodautoscaling.controller import changed_keys
from kcm.controllers.horizontalpodautoscaling.counts import RECONCILIATIONS
from kcm.reconcile.contract import Change
from kcm.reconcile.plan import Failure, Outcome, Plan
from kcm.testing import builders
from kcm.testing.views import NOW, FakeView
from tests.unit.controllers.autoscaling import (
    LABELS,
    FakeMetrics,
    autoscaler,
    cpu,
    external,
    of_pods,
    of_service,
    pod,
    resource,
)
from tests.unit.controllers.autoscaling_syncs import (
    CONTROLLER,
    NO_HISTORY,
    PODS,
    WITHOUT_TOLERANCE,
    carry_out,
    compute_outcome,
    conditions,
    message,
    sync,
    three,
    web,
)

# --- following the metrics


@pytest.mark.parametrize(
    ("metric", "metrics", "expected"),
    [
        (cpu(30), three(50), 5),
        (cpu(50), three(50), None),
        (cpu(50), three(25), 2),
        (resource(type="AverageValue", averageValue="300m"), three(50), 5),
        (
            resource("memory", type="AverageValue", averageValue="1Gi"),
            FakeMetrics(memory={f"p{n}": "2Gi" for n in range(3)}),
            6,
        ),
        (
            of_pods("hits", "10"),
            FakeMetrics(custom={"hits": {"p0": "10", "p1": "20", "p2": "30"}}),
            6,
        ),
        (
            of_service("hits", type="Value", value="10"),
            FakeMetrics(objects={"services default/web hits": "20"}),
            6,
        ),
        (
            of_service("hits", type="AverageValue", averageValue="10"),
            FakeMetrics(objects={"services default/web hits": "50"}),
            5,
        ),
        (
            external("length", type="AverageValue", averageValue="10"),
            FakeMetrics(queues={"length": [({}, "20"), ({"queue": "b"}, "21")]}),
            5,
        ),
        (
            external("length", {"matchLabels": {"queue": "b"}}, type="Value", value="10"),
            FakeMetrics(queues={"length": [({}, "90"), ({"queue": "b"}, "20")]}),
            6,
        ),
    ],
)
def test_replicas_follow_a_metric(
    metric: dict[str, Any], metrics: FakeMetrics, expected: int | None
) -> None:
    plan = sync(autoscaler(metric), metrics)
    replicas, new, after = carry_out(plan)
    assert replicas == expected
    wanted = ("True", "SucceededRescale" if expected else "ReadyForNewScale")
    assert conditions(new)["AbleToScale"] == wanted
    assert conditions(new)["ScalingActive"] == ("True", "ValidMetricFound")
    assert after.requeue_after == 15.0
    assert not plan.events


def test_a_container_is_looked_at_by_itself() -> None:
    metric = {
        "type": "ContainerResource",
        "containerResource": {
            "name": "cpu",
            "container": "app",
            "target": {"type": "Utilization", "averageUtilization": 50},
        },
    }
    use = {"app": "1000m", "log": "10m"}
    metrics = FakeMetrics(cpu={f"p{n}": use for n in range(3)})
    replicas, new, _ = carry_out(sync(autoscaler(metric), metrics))
    assert replicas == 6
    assert message(new, "ScalingActive") == (
        "the HPA was able to successfully calculate a replica count from cpu container resource "
        "utilization (percentage of request)"
    )


def test_the_status_tells_what_was_seen_and_done() -> None:
    _, new, _ = carry_out(sync(autoscaler(cpu(30)), three(50)))
    assert new is not None
    status = new.status
    assert (status.current_replicas, status.desired_replicas) == (3, 5)
    assert status.last_scale_time == NOW
    [metric] = status.current_metrics or []
    assert metric.resource is not None
    current = metric.resource.current
    assert (current.average_utilization, str(current.average_value)) == (50, "500m")


def test_a_rescale_is_told_with_its_reason() -> None:
    def sync_and_read(percent: int) -> tuple[str, str]:
        plan = sync(autoscaler(cpu(50)), three(percent))
        [event] = plan.events_after(compute_outcome(plan))
        return event.reason, event.message

    assert sync_and_read(90) == (
        "SuccessfulRescale",
        "New size: 6; reason: cpu resource utilization (percentage of request) above target",
    )
    assert sync_and_read(10) == (
        "SuccessfulRescale",
        "New size: 1; reason: All metrics below target",
    )


@pytest.mark.parametrize(
    ("replicas", "spec", "expected", "why"),
    [
        (12, {}, 10, "Current number of replicas above Spec.MaxReplicas"),
        (3, {"minReplicas": 5}, 5, "Current number of replicas below Spec.MinReplicas"),
    ],
)
def test_bounds_come_before_metrics(
    replicas: int, spec: dict[str, int], expected: int, why: str
) -> None:
    metrics = FakeMetrics(failure=errors.StoreUnavailable("nobody asked"))
    plan = sync(autoscaler(cpu(50), **spec), metrics, web(replicas))
    assert carry_out(plan)[0] == expected
    [event] = plan.events_after(compute_outcome(plan))
    assert event.message == f"New size: {expected}; reason: {why}"


def test_a_target_of_no_replicas_is_left_alone() -> None:
    replicas, new, _ = carry_out(sync(autoscaler(cpu(50)), three(90), web(0)))
    assert replicas is None
    assert conditions(new)["ScalingActive"] == ("False", "ScalingDisabled")
    assert new is not None
    assert new.status.current_metrics is None


def test_a_target_that_may_have_no_replicas_does_not_start_from_none() -> None:
    """Upstream's gate HPAScaleToZero, which would, is off."""
    hpa = autoscaler(external("length", type="Value", value="10"), minReplicas=0)
    busy = FakeMetrics(queues={"length": [({}, "25")]})
    idle = FakeMetrics(queues={"length": [({}, "0")]})
    assert carry_out(sync(hpa, busy, web(0), []))[0] is None
    assert carry_out(sync(hpa, idle, web(1), [pod("p0")]))[0] == 0


@pytest.mark.parametrize(
    ("reference", "target"),
    [
        (
            {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web"},
            builders.replica_set("web", replicas=3, labels=LABELS),
        ),
        ({"apiVersion": "apps/v9", "kind": "Deployment", "name": "web"}, web()),
    ],
)
def test_any_kind_with_a_scale_follows(reference: dict[str, str], target: KubeObject) -> None:
    hpa = autoscaler(cpu(30), scaleTargetRef=reference)
    assert carry_out(sync(hpa, three(50), target))[0] == 5


# --- what is remembered


def test_the_first_figures_do_not_scale_down_at_once() -> None:
    plan = sync(autoscaler(cpu(80)), three(10), memory={})
    replicas, new, _ = carry_out(plan)
    assert replicas is None
    assert conditions(new)["AbleToScale"] == ("True", "ScaleDownStabilized")
    later = NOW + timedelta(minutes=6)
    memory = dict(plan.state or {})
    metrics = replace(three(10), moment=later)
    assert carry_out(sync(autoscaler(cpu(80)), metrics, memory=memory, now=later))[0] == 1


def test_what_was_done_counts_for_the_rates_of_the_next_syncs() -> None:
    policy = {"type": "Pods", "value": 1, "periodSeconds": 60}
    hpa = autoscaler(cpu(10), behavior={"scaleUp": {"policies": [policy]}})
    plan = sync(hpa, three(50))
    replicas, _, after = carry_out(plan)
    assert replicas == 4
    memory = dict(after.state or {})
    four = [*PODS, pod("p3")]
    metrics = FakeMetrics(cpu={f"p{n}": "500m" for n in range(4)})
    soon, later = NOW + timedelta(seconds=15), NOW + timedelta(seconds=75)
    again = sync(hpa, replace(metrics, moment=soon), web(4), four, memory=memory, now=soon)
    assert carry_out(again)[0] is None
    assert conditions(carry_out(again)[1])["ScalingLimited"] == ("True", "ScaleUpLimit")
    again = sync(hpa, replace(metrics, moment=later), web(4), four, memory=memory, now=later)
    assert carry_out(again)[0] == 5


def test_an_autoscaler_that_is_gone_is_forgotten() -> None:
    view = FakeView(controller=CONTROLLER, memory=NO_HISTORY)
    assert CONTROLLER.reconcile("default/web", view) == Plan(state={})


def test_a_condition_keeps_its_time_while_its_word_stays() -> None:
    hpa = autoscaler(cpu(50))
    _, first, _ = carry_out(sync(hpa, three(50)))
    assert first is not None
    later = NOW + timedelta(seconds=15)
    metrics = replace(three(60), moment=later)
    _, second, _ = carry_out(sync(first, metrics, now=later))
    assert second is not None
    assert {c.last_transition_time for c in second.status.conditions or ()} == {NOW}


def test_nothing_is_written_when_nothing_changed() -> None:
    hpa = autoscaler(cpu(50))
    _, first, _ = carry_out(sync(hpa, three(50)))
    assert first is not None
    assert carry_out(sync(first, three(50)))[1] is None


# --- options


def test_the_tolerance_of_an_autoscaler_counts_unless_its_gate_is_off() -> None:
    hpa = autoscaler(cpu(50), behavior={"scaleUp": {"tolerance": "0"}})
    assert carry_out(sync(hpa, three(54)))[0] == 4
    assert carry_out(sync(hpa, three(54), controller=WITHOUT_TOLERANCE))[0] is None


def test_upstreams_counters_are_counted() -> None:
    plan = sync(autoscaler(cpu(30), of_pods("hits", "10")), three(50))
    prefix = "horizontal_pod_autoscaler_controller"
    assert dict(plan.counts) == {
        f"{prefix}_metric_computation|scale_up|none|Resource": 1,
        f"{prefix}_metric_computation|none|internal|Pods": 1,
    }
    assert plan.counts_after(compute_outcome(plan)) == RECONCILIATIONS.count("scale_up", "internal")


def test_a_scale_counts_once_it_was_written() -> None:
    """In upstream's reconcileAutoscaler, too, the action is known only after the update of the
    scale.
    """
    plan = sync(autoscaler(cpu(30)), three(50))
    (patch,) = plan.writes
    refused = Outcome(failures=[Failure(patch, errors.Conflict("refused"))])
    assert plan.counts_after(compute_outcome(plan)) == RECONCILIATIONS.count("scale_up", "none")
    assert plan.counts_after(refused) == RECONCILIATIONS.count("none", "internal")
    assert plan.counts_after(compute_outcome(plan, web(0))) == RECONCILIATIONS.count("none", "none")
    still = sync(autoscaler(cpu(50)), three(50))
    assert still.counts_after(Outcome()) == {}
    assert RECONCILIATIONS.count("none", "none").items() <= dict(still.counts).items()


def test_a_change_of_the_status_alone_adds_no_key() -> None:
    hpa = autoscaler(cpu(50))
    seen = hpa.with_status(hpa.status.replace(desired_replicas=4))
    view = FakeView()
    assert list(changed_keys(Change(None, hpa), view)) == ["default/web"]
    assert list(changed_keys(Change(hpa, None), view)) == ["default/web"]
    assert list(changed_keys(Change(hpa, seen), view)) == []
    assert list(changed_keys(Change(hpa, autoscaler(cpu(60))), view)) == ["default/web"]
