"""HorizontalPodAutoscalers."""

from __future__ import annotations

from typing import Any

import pytest

from kcm.api import codec
from kcm.api.scheme import BUILT_IN
from kcm.kinds import defaults
from kcm.kinds.validation import validate_create, validate_update
from tests.samples import BODIES, sample, with_spec
from tests.unit.kinds.validation.outcomes import (
    texts,
    validate_changed,
    validate_changed_status,
    validate_new_spec,
)

NAME = "horizontalpodautoscalers.autoscaling"
METRIC = "spec.metrics[0]"
WEB = {"kind": "Service", "name": "web"}


def resource(**target: Any) -> dict[str, Any]:
    return {"type": "Resource", "resource": {"name": "cpu", "target": target}}


def external(**target: Any) -> dict[str, Any]:
    return {"type": "External", "external": {"metric": {"name": "length"}, "target": target}}


def up(**rules: Any) -> dict[str, Any]:
    return {"scaleUp": rules}


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({}, []),
        (
            {"minReplicas": 0},
            [
                "spec.minReplicas: Invalid value: 0: must be greater than or equal to 1",
                "spec.metrics: Forbidden: must specify at least one Object or External metric to "
                "support scaling to zero replicas",
            ],
        ),
        ({"maxReplicas": 0, "minReplicas": None}, [
            "spec.maxReplicas: Invalid value: 0: must be greater than 0",
            "spec.maxReplicas: Invalid value: 0: must be greater than or equal to `minReplicas`",
        ]),
        ({"minReplicas": 6}, [
            "spec.maxReplicas: Invalid value: 5: must be greater than or equal to `minReplicas`",
        ]),
        ({"scaleTargetRef": {"apiVersion": "apps/v1"}}, [
            "spec.scaleTargetRef.kind: Required value",
            "spec.scaleTargetRef.name: Required value",
        ]),
        ({"scaleTargetRef": {"kind": "Deployment", "name": "web"}}, [
            'spec.scaleTargetRef.apiVersion: Invalid value: "": apiVersion must specify API group',
        ]),
        ({"scaleTargetRef": {"kind": "ReplicationController", "name": "web"}}, []),
        ({"scaleTargetRef": {"kind": "a/b", "name": "..", "apiVersion": "apps/v1"}}, [
            'spec.scaleTargetRef.kind: Invalid value: "a/b": may not contain \'/\'',
            'spec.scaleTargetRef.name: Invalid value: "..": may not be \'..\'',
        ]),
    ],
)  # fmt: skip
def test_bounds_and_target_are_checked_as_upstream_does(
    spec: dict[str, Any], expected: list[str]
) -> None:
    assert validate_new_spec(NAME, **spec) == expected


@pytest.mark.parametrize(
    ("metric", "expected"),
    [
        (resource(type="AverageValue", averageValue="1"), []),
        (external(type="Value", value="1"), []),
        ({}, [
            f"{METRIC}.type: Required value: must specify a metric source type",
            f'{METRIC}.type: Unsupported value: "": supported values: "ContainerResource", '
            '"External", "Object", "Pods", "Resource"',
        ]),
        ({"type": "Pods"}, [
            f"{METRIC}.pods: Required value: must populate information for the given metric "
            "source",
        ]),
        ({**external(type="Value", value="1"), "type": "Resource"}, [
            f"{METRIC}.resource: Required value: must populate information for the given metric "
            "source",
        ]),
        ({**resource(type="AverageValue", averageValue="1"), **external()}, [
            f"{METRIC}.external.target.type: Required value: must specify a metric target type",
            f'{METRIC}.external.target.type: Invalid value: "": must be either Utilization, '
            "Value, or AverageValue",
            f"{METRIC}.external.target.averageValue: Required value: must set either a target "
            "value for metric or a per-pod target",
            f"{METRIC}.resource: Forbidden: must populate the given metric source only",
        ]),
        (resource(type="Utilization"), [
            f"{METRIC}.resource.target.averageUtilization: Required value: must set either a "
            "target raw value or a target utilization",
        ]),
        (resource(type="Utilization", averageUtilization=0, averageValue="-1"), [
            f'{METRIC}.resource.target.averageValue: Invalid value: "-1": must be positive',
            f"{METRIC}.resource.target.averageUtilization: Invalid value: 0: must be greater "
            "than 0",
            f"{METRIC}.resource.target.averageValue: Forbidden: may not set both a target raw "
            "value and a target utilization",
        ]),
        (external(type="Value", value="1", averageValue="1"), [
            f"{METRIC}.external.target.value: Forbidden: may not set both a target value for "
            "metric and a per-pod target",
        ]),
        (
            {
                "type": "Object",
                "object": {"describedObject": WEB, "metric": {}, "target": {"type": "Value"}},
            },
            [
                f"{METRIC}.object.metric.name: Required value: must specify a metric name",
                f"{METRIC}.object.target.averageValue: Required value: must set either a target "
                "value or averageValue",
            ],
        ),
        ({"type": "Pods", "pods": {"metric": {"name": "a/b"}, "target": {"type": "Value"}}}, [
            f'{METRIC}.pods.metric.name: Invalid value: "a/b": may not contain \'/\'',
            f"{METRIC}.pods.target.averageValue: Required value: must specify a positive target "
            "averageValue",
        ]),
        (
            {
                "type": "ContainerResource",
                "containerResource": {
                    "name": "",
                    "container": "",
                    "target": {"type": "Utilization", "averageUtilization": 1},
                },
            },
            [
                f"{METRIC}.containerResource.name: Required value: must specify a resource name",
                f"{METRIC}.containerResource.container: Required value: must specify a container",
            ],
        ),
    ],
)  # fmt: skip
def test_a_metric_is_checked_as_upstream_does(metric: dict[str, Any], expected: list[str]) -> None:
    assert validate_new_spec(NAME, metrics=[metric]) == expected


@pytest.mark.parametrize(
    ("behavior", "expected"),
    [
        ({}, []),
        (up(stabilizationWindowSeconds=0, selectPolicy="Disabled"), []),
        (up(stabilizationWindowSeconds=-1), [
            "spec.behavior.scaleUp.stabilizationWindowSeconds: Invalid value: -1: must be greater "
            "than or equal to zero",
        ]),
        (up(stabilizationWindowSeconds=3601, selectPolicy="Most"), [
            "spec.behavior.scaleUp.stabilizationWindowSeconds: Invalid value: 3601: must be less "
            "than or equal to 3600",
            'spec.behavior.scaleUp.selectPolicy: Unsupported value: "Most": supported values: '
            '"Disabled", "Max", "Min"',
        ]),
        (up(policies=[]), [
            "spec.behavior.scaleUp.policies: Required value: must specify at least one Policy",
        ]),
        (up(policies=[{"type": "Nodes", "value": 0, "periodSeconds": 0}]), [
            'spec.behavior.scaleUp.policies[0].type: Unsupported value: "Nodes": supported '
            'values: "Percent", "Pods"',
            "spec.behavior.scaleUp.policies[0].value: Invalid value: 0: must be greater than zero",
            "spec.behavior.scaleUp.policies[0].periodSeconds: Invalid value: 0: must be greater "
            "than zero",
        ]),
        (up(policies=[{"type": "Pods", "value": 1, "periodSeconds": 1801}]), [
            "spec.behavior.scaleUp.policies[0].periodSeconds: Invalid value: 1801: must be less "
            "than or equal to 1800",
        ]),
        (up(tolerance="-0.1"), [
            'spec.behavior.scaleUp.tolerance: Invalid value: "-100m": must be greater than or '
            "equal to 0",
        ]),
    ],
)  # fmt: skip
def test_a_behavior_is_checked_as_upstream_does(
    behavior: dict[str, Any], expected: list[str]
) -> None:
    assert validate_new_spec(NAME, behavior=behavior) == expected


def test_an_autoscaler_that_may_scale_to_zero_may_go_on_to() -> None:
    def may_go_to_zero(high: int) -> Any:
        metrics = [external(type="Value", value="1")]
        return with_spec(NAME, minReplicas=0, maxReplicas=high, metrics=metrics)

    assert validate_changed(may_go_to_zero(5), may_go_to_zero(4)) == []
    assert validate_changed(may_go_to_zero(5), with_spec(NAME)) == [
        "spec.minReplicas: Invalid value: 0: must be greater than or equal to 1"
    ]


def test_a_status_has_no_negative_numbers() -> None:
    old = sample(NAME)
    new = old.with_status(old.status.replace(current_replicas=-1, desired_replicas=-2))
    assert validate_changed_status(new, old) == [
        "status.currentReplicas: Invalid value: -1: must be greater than or equal to 0",
        "status.desiredReplicas: Invalid value: -2: must be greater than or equal to 0",
    ]


def test_v1_is_checked_by_the_rules_of_v2() -> None:
    body = {**BODIES[NAME]["spec"], "metrics": None, "targetCPUUtilizationPercentage": 0}
    kind = {"apiVersion": "autoscaling/v1", "kind": "HorizontalPodAutoscaler"}
    metadata = {"name": "a", "namespace": "default"}
    obj: Any = defaults.apply(codec.decode({**kind, "metadata": metadata, "spec": body}, BUILT_IN))
    fault = f"{METRIC}.resource.target.averageUtilization: Invalid value: 0: must be greater than 0"
    assert texts(validate_create(obj)) == [fault]
    assert texts(validate_update(obj, obj)) == [fault]
