"""ResourceQuota. Cases after upstream's TestValidateResourceQuota."""

from __future__ import annotations

from typing import Any

import pytest

from tests.samples import sample, with_spec
from tests.unit.kinds.validation.outcomes import (
    validate_changed,
    validate_changed_status,
    validate_new_spec,
)

QUOTAS = "resourcequotas"


def expression(scope: str, operator: str, *values: str) -> dict[str, Any]:
    requirement: dict[str, Any] = {"scopeName": scope, "operator": operator}
    return {"matchExpressions": [requirement | ({"values": list(values)} if values else {})]}


HIGH = expression("PriorityClass", "In", "high")


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"hard": {"cpu": "100m", "pods": "1", "requests.example.com/gpu": "1"}}, []),
        ({"hard": {"count/widgets.example.com": "1", "requests.hugepages-2Mi": "4Mi"}}, []),
        ({"hard": {"pods": "1", "limits.cpu": "1"}, "scopes": ["NotBestEffort"]}, []),
        ({"hard": {"pods": "1"}, "scopeSelector": HIGH}, []),
        (
            {"hard": {"rubbish": "1"}},
            ['spec.hard[rubbish]: Invalid value: "rubbish": must be a standard resource for quota'],
        ),
        (
            {"hard": {"pods": "-1", "services": "500m"}},
            [
                'spec.hard[pods]: Invalid value: "-1": must be greater than or equal to 0',
                'spec.hard[services]: Invalid value: "500m": must be an integer',
            ],
        ),
        (
            {"hard": {"pods": "1"}, "scopes": ["Rubbish"]},
            ['spec.scopes: Invalid value: []string{"Rubbish"}: unsupported scope'],
        ),
        (
            {"hard": {"pods": "1", "cpu": "1"}, "scopes": ["BestEffort"]},
            [
                'spec.scopes: Invalid value: []string{"BestEffort"}: unsupported scope applied '
                "to resource"
            ],
        ),
        (
            {"hard": {"pods": "1"}, "scopes": ["Terminating", "NotTerminating"]},
            [
                'spec.scopes: Invalid value: []string{"Terminating", "NotTerminating"}: '
                "conflicting scopes"
            ],
        ),
        (
            {"scopeSelector": expression("PriorityClass", "In")},
            [
                "spec.scopeSelector.matchExpressions.values: Required value: must be at least one "
                "value when `operator` is 'In' or 'NotIn' for scope selector"
            ],
        ),
        (
            {"scopeSelector": expression("PriorityClass", "Near", "a")},
            [
                'spec.scopeSelector.matchExpressions.operator: Invalid value: "Near": not a valid '
                "selector operator"
            ],
        ),
        (
            {"scopeSelector": expression("PriorityClass", "Exists", "a")},
            [
                "spec.scopeSelector.matchExpressions.values: Invalid value: "
                '[]string{"a"}: must be no '
                "value when `operator` is 'Exist' or 'DoesNotExist' for scope selector"
            ],
        ),
    ],
)
def test_the_spec(spec: dict[str, Any], expected: list[str]) -> None:
    assert validate_new_spec(QUOTAS, **{"hard": {}, **spec}) == expected


def test_most_scopes_only_exist() -> None:
    (fault,) = validate_new_spec(
        QUOTAS, hard={}, scopeSelector=expression("BestEffort", "DoesNotExist")
    )
    assert "must be 'Exist' when scope is any of" in fault


def test_scopes_do_not_change() -> None:
    old = with_spec(QUOTAS, hard={"pods": "1"}).with_metadata(resource_version="1", uid="u")
    new = with_spec(QUOTAS, hard={"pods": "2"}, scopes=["Terminating"])
    new = new.with_metadata(resource_version="1", uid="u")
    assert validate_changed(new, old) == [
        'spec.scopes: Invalid value: []string{"Terminating"}: field is immutable'
    ]


def test_the_status_holds_amounts_of_known_resources() -> None:
    old = sample(QUOTAS).with_metadata(resource_version="1", uid="u")
    status = sample(QUOTAS, status={"used": {"x": "1"}}).status
    assert validate_changed_status(old.with_status(status), old) == [
        'status.used[x]: Invalid value: "x": must be a standard resource for quota'
    ]
