"""The rules of ValidateAPIService and ValidateAPIServiceStatus,
staging/src/k8s.io/kube-aggregator/pkg/apis/apiregistration/validation/validation.go, Kubernetes
1.33. Upstream has no table for them.
"""

from __future__ import annotations

from typing import Any

import pytest

from kcm.api.apiregistration_v1 import APIServiceCondition, APIServiceStatus
from tests.samples import BODIES, sample
from tests.unit.kinds.validation.outcomes import (
    validate_changed,
    validate_changed_status,
    validate_new,
)

SERVICES = "apiservices.apiregistration.k8s.io"
SPEC: dict[str, Any] = BODIES[SERVICES]["spec"]
SERVICE = {"namespace": "default", "name": "fruits"}
LOCAL: dict[str, Any] = {"service": None, "insecureSkipTLSVerify": False}
BUNDLE = "aGVsbG8="


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({}, ""),
        (LOCAL, ""),
        ({"insecureSkipTLSVerify": False, "caBundle": BUNDLE}, ""),
        ({"groupPriorityMinimum": 20000, "versionPriority": 1000}, ""),
        ({"groupPriorityMinimum": 20001},
         "spec.groupPriorityMinimum: Invalid value: 20001: must be positive and less than 20000"),
        ({"groupPriorityMinimum": 0},
         "spec.groupPriorityMinimum: Invalid value: 0: must be positive and less than 20000"),
        ({"versionPriority": 1001},
         "spec.versionPriority: Invalid value: 1001: must be positive and less than 1000"),
        ({"versionPriority": -1},
         "spec.versionPriority: Invalid value: -1: must be positive and less than 1000"),
        ({**LOCAL, "caBundle": BUNDLE},
         'spec.caBundle: Invalid value: "5 bytes": local APIServices may not have a caBundle'),
        ({"service": None},
         "spec.insecureSkipTLSVerify: Invalid value: true: local APIServices may not have "
         "insecureSkipTLSVerify"),
        ({"caBundle": BUNDLE},
         "spec.insecureSkipTLSVerify: Invalid value: true: may not be true if caBundle is present"),
        ({"service": {"name": "fruits"}}, "spec.service.namespace: Required value"),
        ({"service": {"namespace": "default"}}, "spec.service.name: Required value"),
        ({"service": SERVICE | {"port": 65536}},
         "spec.service.port: Invalid value: 65536: port is not valid: must be between 1 and "
         "65535, inclusive"),
    ],
)  # fmt: skip
def test_an_api_service_names_a_server_and_its_place(changes: dict[str, Any], fault: str) -> None:
    assert validate_new(SERVICES, spec=SPEC | changes) == ([fault] if fault else [])


@pytest.mark.parametrize(
    ("name", "group", "version", "faults"),
    [
        ("v1.example.com", "example.com", "v1", []),
        ("v1.", None, "v1", []),
        ("v2.", None, "v2",
         ["spec.group: Required value: only v1 may have an empty group and it better be legacy "
          "kube"]),
        ("v1.other.com", "example.com", "v1",
         ['metadata.name: Invalid value: "v1.other.com": must be `spec.version+"."+spec.group`: '
          '"v1.example.com"']),
        ("a/b", "example.com", "v1",
         ["metadata.name: Invalid value: \"a/b\": may not contain '/'"]),
    ],
)  # fmt: skip
def test_the_name_is_version_and_group(
    name: str, group: str | None, version: str, faults: list[str]
) -> None:
    spec = SPEC | {"group": group, "version": version}
    assert validate_new(SERVICES, metadata={"name": name}, spec=spec) == faults


def test_group_and_version_are_names() -> None:
    spec = SPEC | {"group": "Example", "version": "1"}
    faults = validate_new(SERVICES, metadata={"name": "1.Example"}, spec=spec)
    assert [fault.partition(":")[0] for fault in faults] == ["spec.group", "spec.version"]


def test_what_is_not_base64_is_no_bundle() -> None:
    spec = SPEC | {"insecureSkipTLSVerify": False, "caBundle": "%"}
    assert validate_new(SERVICES, spec=spec) == [
        'spec.caBundle: Invalid value: "%": illegal base64 data'
    ]


def test_an_update_is_checked_as_a_new_one() -> None:
    old = sample(SERVICES).with_metadata(resource_version="1")
    new = old.with_spec(old.spec.replace(group_priority_minimum=0))
    [fault] = validate_changed(new, old)
    assert fault.startswith("spec.groupPriorityMinimum")


@pytest.mark.parametrize("status", ["True", "False", "Unknown"])
def test_a_condition_is_true_false_or_unknown(status: str) -> None:
    old = sample(SERVICES).with_metadata(resource_version="1")
    right, wrong = (
        old.with_status(APIServiceStatus(conditions=[APIServiceCondition(status=word)]))
        for word in (status, f"not {status}")
    )
    assert validate_changed_status(right, old) == []
    assert validate_changed_status(wrong, old) == [
        f'status.conditions[0].status: Unsupported value: "not {status}": supported values: '
        '"True", "False", "Unknown"'
    ]
