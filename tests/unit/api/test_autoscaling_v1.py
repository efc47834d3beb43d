"""Conversion of autoscalers from v1 to v2 and back loses nothing."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kcm.api import autoscaling_v1 as v1
from kcm.api import codec
from kcm.api.scheme import BUILT_IN
from tests.samples import manifest, with_spec

NAME = "horizontalpodautoscalers.autoscaling"
V1, V2 = v1.HorizontalPodAutoscaler.resource, BUILT_IN.by_name(NAME)
TARGET = {"kind": "Deployment", "name": "web"}
SELECTOR = {"matchLabels": {"queue": "jobs"}}


def resource(**target: Any) -> dict[str, Any]:
    return {"type": "Resource", "resource": {"name": "cpu", "target": target}}


UTILIZATION = resource(type="Utilization", averageUtilization=50)
EVERY_METRIC = [
    resource(type="AverageValue", averageValue="500m"),
    {
        "type": "ContainerResource",
        "containerResource": {
            "name": "memory",
            "container": "app",
            "target": {"type": "Utilization", "averageUtilization": 70},
        },
    },
    {
        "type": "Pods",
        "pods": {
            "metric": {"name": "hits", "selector": SELECTOR},
            "target": {"type": "AverageValue", "averageValue": "10"},
        },
    },
    {
        "type": "Object",
        "object": {
            "describedObject": {"kind": "Service", "name": "web"},
            "metric": {"name": "hits"},
            "target": {"type": "Value", "value": "2k"},
        },
    },
    {
        "type": "Object",
        "object": {
            "describedObject": {"kind": "Service", "name": "web"},
            "metric": {"name": "hits", "selector": SELECTOR},
            "target": {"type": "AverageValue", "averageValue": "20"},
        },
    },
    {
        "type": "External",
        "external": {
            "metric": {"name": "length", "selector": SELECTOR},
            "target": {"type": "AverageValue", "averageValue": "30"},
        },
    },
]
CURRENT = [
    {
        "type": "Resource",
        "resource": {
            "name": "cpu",
            "current": {"averageUtilization": 40, "averageValue": "80m"},
        },
    },
    {"type": "External", "external": {"metric": {"name": "length"}, "current": {"value": "7"}}},
    {"type": ""},
]
CONDITIONS = [{"type": "AbleToScale", "status": "True", "reason": "ReadyForNewScale"}]
BEHAVIOR = {"scaleDown": {"policies": [{"type": "Pods", "value": 1, "periodSeconds": 15}]}}


def v2(metrics: list[Any], **status: Any) -> dict[str, Any]:
    spec = {"scaleTargetRef": TARGET, "minReplicas": 2, "maxReplicas": 5, "metrics": metrics}
    return manifest(NAME, spec=spec, status={"desiredReplicas": 3, **status})


@pytest.mark.parametrize(
    "body",
    [
        v2([UTILIZATION]),
        v2([UTILIZATION, *EVERY_METRIC]),
        v2(EVERY_METRIC[1:]),
        v2([UTILIZATION], currentMetrics=CURRENT, conditions=CONDITIONS, currentReplicas=3),
        {**v2([UTILIZATION]), "spec": {**v2([UTILIZATION])["spec"], "behavior": BEHAVIOR}},
    ],
)
def test_an_autoscaler_read_in_v1_and_written_back_is_what_it_was(body: dict[str, Any]) -> None:
    stored = codec.decode(body, V2)
    seen = codec.decode_stored(codec.encode(stored), V1)
    assert seen.api_version == "autoscaling/v1"
    assert codec.decode(codec.encode_stored(seen, V1), V2) == stored


def test_v1_shows_the_utilization_of_the_cpu_and_keeps_the_rest_in_annotations() -> None:
    body = v2([UTILIZATION, EVERY_METRIC[2]], currentMetrics=CURRENT, conditions=CONDITIONS)
    body["metadata"]["annotations"] = {"mine": "1"}
    seen = v1.from_v2(body)
    assert seen["spec"]["targetCPUUtilizationPercentage"] == 50
    assert seen["status"]["currentCPUUtilizationPercentage"] == 40
    annotations = seen["metadata"]["annotations"]
    assert annotations["mine"] == "1"
    assert json.loads(annotations[v1.METRICS]) == [
        {
            "type": "Pods",
            "pods": {"metricName": "hits", "selector": SELECTOR, "targetAverageValue": "10"},
        }
    ]
    assert json.loads(annotations[v1.CURRENT_METRICS])[0] == {
        "type": "Resource",
        "resource": {
            "name": "cpu",
            "currentAverageUtilization": 40,
            "currentAverageValue": "80m",
        },
    }
    assert json.loads(annotations[v1.CONDITIONS]) == CONDITIONS


def test_a_behavior_is_kept_under_the_names_that_upstream_uses_and_read_under_either() -> None:
    body = v2([UTILIZATION])
    body["spec"]["behavior"] = BEHAVIOR
    seen = v1.from_v2(body)
    policy = {"Type": "Pods", "Value": 1, "PeriodSeconds": 15}
    kept = json.loads(seen["metadata"]["annotations"][v1.BEHAVIOR])
    assert kept == {"ScaleDown": {"Policies": [policy]}}
    seen["metadata"]["annotations"][v1.BEHAVIOR] = json.dumps(BEHAVIOR)
    assert v1.to_v2(seen)["spec"]["behavior"] == BEHAVIOR


def test_an_autoscaler_of_v1_without_a_target_keeps_80_percent() -> None:
    obj = codec.decode(
        {
            "apiVersion": "autoscaling/v1",
            "kind": "HorizontalPodAutoscaler",
            "metadata": {"name": "a"},
            "spec": {"scaleTargetRef": TARGET, "maxReplicas": 3},
        },
        BUILT_IN,
    )
    assert isinstance(obj, v1.HorizontalPodAutoscaler)
    [metric] = v1.as_v2(obj).spec.metrics or []
    assert metric.resource is not None
    assert metric.resource.target.average_utilization == 80


@pytest.mark.parametrize("text", ["", "{", "3", "[3]", '[{"type": 3}]', '{"a": 1}'])
@pytest.mark.parametrize("name", v1.ANNOTATIONS)
def test_an_annotation_that_cannot_be_read_counts_as_none(name: str, text: str) -> None:
    seen = v1.from_v2(v2([UTILIZATION]))
    seen["metadata"]["annotations"] = {name: text}
    converted = v1.to_v2(seen)
    assert converted["spec"]["metrics"] == [UTILIZATION]
    assert "annotations" not in converted["metadata"]


def test_both_are_versions_of_one_stored_kind_and_v2_is_the_stored_one() -> None:
    assert [version.version for version in BUILT_IN.versions(NAME)] == ["v2", "v1"]
    assert BUILT_IN.lookup("hpa") is V2
    assert with_spec(NAME).api_version == "autoscaling/v2"
