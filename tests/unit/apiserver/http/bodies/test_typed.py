"""Tests the words about configurations of the wrong type; after TestApplyUnknown and others of
upstream's test/integration/apiserver/apply, and typed/validate_test.go of structured-merge-diff.
"""

from __future__ import annotations

from typing import Any

import pytest

from kcm.api.apps_v1 import Deployment
from kcm.api.core_v1 import ConfigMap, Pod, Service
from kcm.api.custom.structural_schema import parse
from kcm.apiextensions.structure import Struct
from kcm.apiserver.http.bodies.typed import describe_faults

PORT = {"protocol": "TCP"}
SCHEMA = parse(
    {
        "type": "object",
        "properties": {
            "count": {"type": "integer"},
            "either": {"x-kubernetes-int-or-string": True},
            "open": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
            "map": {"type": "object", "additionalProperties": {"type": "string"}},
            "list": {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"},
            "within": {
                "type": "object",
                "x-kubernetes-embedded-resource": True,
                "x-kubernetes-preserve-unknown-fields": True,
            },
        },
    }
)


def spec(**fields: Any) -> dict[str, Any]:
    return {"spec": fields}


@pytest.mark.parametrize(
    ("model", "config", "fault"),
    [
        (ConfigMap, {"kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"x": "y"}}, ""),
        (ConfigMap, {"bogus": "5"}, ".bogus: field not declared in schema"),
        (ConfigMap, {"metadata": {"bogusm": 1}}, ".metadata.bogusm: field not declared in schema"),
        (ConfigMap, {"data": None, "metadata": {"creationTimestamp": None}}, ""),
        (
            Deployment,
            spec(replicas="three"),
            ".spec.replicas: expected numeric (int or float), got string",
        ),
        (
            Deployment,
            spec(replicas=True, paused="no"),
            "errors:\n  .spec.replicas: expected numeric (int or float), got bool\n"
            "  .spec.paused: expected boolean, got &{no}",
        ),
        (
            ConfigMap,
            {"data": {"x": 8080, "y": ["a"]}},
            "errors:\n  .data.x: expected string, got &value.valueUnstructured{Value:8080}\n"
            "  .data.y: expected string, got &value.valueUnstructured"
            '{Value:[]interface {}{"a"}}',
        ),
        (Pod, spec(containers={"a": 1}), ".spec.containers: expected list, got &{map[a:1]}"),
        (Pod, {"spec": [1, True]}, ".spec: expected map, got &{[1 true]}"),
        (
            Pod,
            spec(containers=[{"name": "c", "bogus": 1}]),
            '.spec.containers[name="c"].bogus: field not declared in schema',
        ),
        (
            Pod,
            spec(containers=[{"image": "i"}]),
            ".spec.containers: element 0: associative list with keys has an element that omits all "
            'key fields ["name"] (and doesn\'t have default values for any key fields)',
        ),
        (
            Service,
            spec(ports=[{"port": 80}, {"port": 80, "protocol": "TCP"}]),
            '.spec.ports: duplicate entries for key [port=80,protocol="TCP"]',
        ),
        (
            Pod,
            spec(tolerations=[{"bogus": 1}]),
            ".spec.tolerations[0].bogus: field not declared in schema",
        ),
        (SCHEMA, {"count": 1, "either": "a", "open": {"x": [1]}, "map": {"a": "b"}}, ""),
        (SCHEMA, {"count": "1"}, ".count: expected numeric (int or float), got string"),
        (SCHEMA, {"either": []}, ".either: expected any scalar, got &{[]}"),
        (
            SCHEMA,
            {"map": {"a": 1}},
            ".map.a: expected string, got &value.valueUnstructured{Value:1}",
        ),
        (SCHEMA, {"list": ["a", "a"]}, '.list: duplicate entries for key [="a"]'),
        (SCHEMA, {"other": 1}, ".other: field not declared in schema"),
        (SCHEMA, {"within": {"kind": "X", "any": 1, "metadata": {"labels": {}}}}, ""),
        (
            SCHEMA,
            {"within": {"metadata": {"unknownSubMeta": 1}}},
            ".within.metadata.unknownSubMeta: field not declared in schema",
        ),
    ],
)
def test_a_configuration_is_told_what_is_wrong_with_its_types(
    model: Struct, config: dict[str, Any], fault: str
) -> None:
    assert describe_faults(config, model) == fault
