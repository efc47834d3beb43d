"""The defaults of autoscalers."""

from __future__ import annotations

from typing import Any

import pytest

from tests.samples import BODIES, sample

NAME = "horizontalpodautoscalers.autoscaling"
UP = [("Pods", 4, 15), ("Percent", 100, 15)]
DOWN = [("Percent", 100, 15)]


def autoscaler(**spec: Any) -> Any:
    target = BODIES[NAME]["spec"]["scaleTargetRef"]
    return sample(NAME, spec={"scaleTargetRef": target, "maxReplicas": 3, **spec})


def test_an_autoscaler_without_metrics_keeps_the_cpu_at_80_percent_of_the_requests() -> None:
    spec = autoscaler().spec
    [metric] = spec.metrics
    assert (metric.type, metric.resource.name) == ("Resource", "cpu")
    assert metric.resource.target.average_utilization == 80
    assert (spec.min_replicas, spec.behavior) == (1, None)


@pytest.mark.parametrize(
    ("behavior", "up", "down"),
    [
        ({}, (0, "Max", UP), (None, "Max", DOWN)),
        (
            {"scaleUp": {"selectPolicy": "Disabled"}},
            (0, "Disabled", UP),
            (None, "Max", DOWN),
        ),
        (
            {
                "scaleDown": {
                    "stabilizationWindowSeconds": 60,
                    "policies": [{"type": "Pods", "value": 1, "periodSeconds": 30}],
                }
            },
            (0, "Max", UP),
            (60, "Max", [("Pods", 1, 30)]),
        ),
    ],
)
def test_a_behavior_that_says_something_gets_the_rest_as_well(
    behavior: dict[str, Any],
    up: tuple[int, str, list[tuple[str, int, int]]],
    down: tuple[int | None, str, list[tuple[str, int, int]]],
) -> None:
    completed = autoscaler(behavior=behavior).spec.behavior
    for rules, expected in ((completed.scale_up, up), (completed.scale_down, down)):
        policies = [(p.type, p.value, p.period_seconds) for p in rules.policies]
        assert (rules.stabilization_window_seconds, rules.select_policy, policies) == expected
