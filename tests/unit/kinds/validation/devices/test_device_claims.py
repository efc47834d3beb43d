"""Claims, templates and classes, with cases of
pkg/apis/resource/validation/validation_{resourceclaim,resourceclaimtemplate,deviceclass}_test.go,
Kubernetes 1.36.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.samples import sample
from tests.unit.kinds.validation.outcomes import (
    validate_changed,
    validate_new,
    validate_new_spec,
)

CLAIMS = "resourceclaims.resource.k8s.io"
TEMPLATES = "resourceclaimtemplates.resource.k8s.io"
CLASSES = "deviceclasses.resource.k8s.io"
EXACT = {"deviceClassName": "c"}
ONE = {"name": "r", "exactly": EXACT}
OPAQUE = {"opaque": {"driver": "d", "parameters": {"a": 1}}}
NOT_A_REQUEST = (
    "must be the name of a request in the claim or the name of a request and a subrequest "
    "separated by '/'"
)


def faults_of_devices(**devices: Any) -> list[str]:
    found = validate_new_spec(CLAIMS, devices={"requests": [ONE], **devices})
    return [fault.removeprefix("spec.devices.") for fault in found]


def faults_of_request(**fields: Any) -> list[str]:
    requests = [{"name": "r", "exactly": {**EXACT, **fields}}]
    found = faults_of_devices(requests=requests)
    return [fault.removeprefix("requests[0].exactly.") for fault in found]


@pytest.mark.parametrize(
    ("devices", "faults"),
    [
        ({}, []),
        ({"requests": [ONE, ONE]}, ['requests[1]: Duplicate value: "r"']),
        ({"requests": [{"name": "r"}]},
         ["requests[0]: Required value: exactly one of `exactly` or `firstAvailable` is required"]),
        ({"requests": [{**ONE, "firstAvailable": [{"name": "a", **EXACT}]}]},
         ["requests[0]: Invalid value: null: exactly one of `exactly` or `firstAvailable` is "
          "required, but multiple fields are set"]),
        ({"requests": [{"name": "r", "firstAvailable": [{"name": f"a{n}", **EXACT}
                                                       for n in range(9)]}]},
         ["requests[0].firstAvailable: Too many: 9: must have at most 8 items"]),
        ({"requests": [{"name": f"r{n}", "exactly": EXACT} for n in range(33)]},
         ["requests: Too many: 33: must have at most 32 items"]),
        ({"constraints": [{"requests": ["s"], "matchAttribute": "d/a"}]},
         [f'constraints[0].requests[0]: Invalid value: "s": {NOT_A_REQUEST}']),
        ({"constraints": [{"matchAttribute": "missing"}]},
         ['constraints[0].matchAttribute: Invalid value: "missing": a fully qualified name must be '
          "a domain and a name separated by a slash"]),
        ({"constraints": [{"requests": ["r", "r"], "distinctAttribute": "d/a"}]},
         ['constraints[0].requests[1]: Duplicate value: "r"']),
        ({"constraints": [{}]},
         ['constraints[0]: Required value: exactly one of "matchAttribute" or "distinctAttribute" '
          "is required, but multiple fields are set"]),
        ({"config": [OPAQUE]}, []),
        ({"config": [{}]}, ["config[0].opaque: Required value"]),
        ({"config": [{"opaque": {"driver": "d", "parameters": []}}]},
         ['config[0].opaque.parameters: Invalid value: "<value omitted>": must be a valid JSON '
          "object"]),
        ({"config": [{"opaque": {"driver": "d", "parameters": {"a": "x" * 10240}}}]},
         ["config[0].opaque.parameters: Too long: may not be more than 10240 bytes"]),
    ],
)  # fmt: skip
def test_a_claim_is_checked_in_upstreams_words(devices: Any, faults: list[str]) -> None:
    assert faults_of_devices(**devices) == faults


@pytest.mark.parametrize(
    ("fields", "faults"),
    [
        ({"allocationMode": "All"}, []),
        ({"deviceClassName": ""}, ["deviceClassName: Required value"]),
        ({"allocationMode": "All", "count": 1},
         ["count: Invalid value: 1: must not be specified when allocationMode is 'All'"]),
        ({"allocationMode": "Some"},
         ['allocationMode: Unsupported value: "Some": supported values: "All", "ExactCount"']),
        ({"count": -1}, ["count: Invalid value: -1: must be greater than zero"]),
        ({"selectors": [{}]}, ["selectors[0].cel: Required value"]),
        ({"selectors": [{"cel": {"expression": 'device.driver == "d"'}}]}, []),
        ({"selectors": [{"cel": {"expression": '"a"'}}]},
         ['selectors[0].cel.expression: Invalid value: "\\"a\\"": must evaluate to bool']),
        ({"selectors": [{"cel": {"expression": "x" * 10241}}]},
         ["selectors[0].cel.expression: Too long: may not be more than 10240 bytes"]),
        ({"tolerations": [{"key": "a"}]}, ["tolerations[0].operator: Required value"]),
        ({"tolerations": [{"operator": "Exists", "value": "v"}]},
         ['tolerations[0].value: Invalid value: "v": must be empty for operator `Exists`']),
        ({"tolerations": [{"operator": "Equal", "effect": "Never"}]},
         ['tolerations[0].effect: Unsupported value: "Never": supported values: "NoExecute", '
          '"NoSchedule", "None"']),
    ],
)  # fmt: skip
def test_a_request_is_checked_in_upstreams_words(fields: Any, faults: list[str]) -> None:
    assert faults_of_request(**fields) == faults


def test_an_expression_that_does_not_compile_is_refused() -> None:
    [fault] = faults_of_request(selectors=[{"cel": {"expression": "devise.driver"}}])
    assert "compilation failed" in fault


def test_requests_are_completed_as_upstream_does() -> None:
    [request] = sample(CLAIMS).spec.devices.requests
    assert (request.exactly.allocation_mode, request.exactly.count) == ("ExactCount", 1)


@pytest.mark.parametrize("name", [CLAIMS, TEMPLATES])
def test_a_spec_does_not_change(name: str) -> None:
    old = sample(name).with_metadata(resource_version="1")
    inner = {"devices": {"requests": [ONE]}}
    spec = inner if name == CLAIMS else {"spec": inner}
    new = sample(name, spec=spec).with_metadata(resource_version="1")
    [fault] = validate_changed(new, old)
    assert fault.startswith("spec: Invalid value")
    assert fault.endswith("field is immutable")


def test_a_template_has_a_claim() -> None:
    found = validate_new(TEMPLATES, spec={"spec": {"devices": {"requests": [ONE, ONE]}}})
    assert found == ['spec.spec.devices.requests[1]: Duplicate value: "r"']


def test_a_class_is_checked_but_for_what_it_had_before() -> None:
    wrong = {"selectors": [{}], "extendedResourceName": "cpu"}
    assert validate_new(CLASSES, spec=wrong) == [
        "spec.selectors[0].cel: Required value",
        'spec.extendedResourceName: Invalid value: "cpu": must be a valid extended resource name',
    ]
    kept = {"selectors": [{}], "extendedResourceName": "example.com/gpu"}
    old = sample(CLASSES, spec=kept).with_metadata(resource_version="1")
    assert validate_changed(old, old) == []
