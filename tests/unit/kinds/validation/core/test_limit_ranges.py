"""LimitRange. Cases after upstream's TestValidateLimitRangeForLocalStorage and
TestValidateLimitRange."""

from __future__ import annotations

from typing import Any

import pytest

from kcm.kinds.validation import validate_update
from tests.samples import sample
from tests.unit.kinds.validation.outcomes import validate_new

RANGES = "limitranges"
AT = "spec.limits[0]"


def faults(*items: dict[str, Any]) -> list[str]:
    return validate_new(RANGES, spec={"limits": list(items)})


@pytest.mark.parametrize(
    ("item", "expected"),
    [
        ({"type": "Pod", "max": {"cpu": "2"}, "min": {"cpu": "1"}}, []),
        (
            {
                "type": "Container",
                "max": {"cpu": "4"},
                "min": {"cpu": "1"},
                "default": {"cpu": "3"},
                "defaultRequest": {"cpu": "2"},
                "maxLimitRequestRatio": {"cpu": "3"},
            },
            [],
        ),
        ({"type": "PersistentVolumeClaim", "max": {"storage": "1Gi"}}, []),
        ({"type": "example.com/thing", "max": {"example.com/x": "1"}}, []),
        (
            {"type": "Thing"},
            [
                f'{AT}.type: Invalid value: "Thing": must be a standard limit type or fully '
                "qualified"
            ],
        ),
        (
            {"type": "Pod", "default": {"cpu": "1"}},
            [f"{AT}.default: Forbidden: may not be specified when `type` is 'Pod'"],
        ),
        (
            {"type": "Pod", "max": {"storage": "1"}},
            [
                f'{AT}.max[storage]: Invalid value: "storage": must be a standard resource for '
                "containers"
            ],
        ),
        (
            {"type": "PersistentVolumeClaim"},
            [
                f"{AT}.limits: Required value: either minimum or maximum storage value is "
                "required, but neither was provided"
            ],
        ),
        (
            {"type": "Pod", "min": {"cpu": "2"}, "max": {"cpu": "1"}},
            [f'{AT}.min[cpu]: Invalid value: "2": min value 2 is greater than max value 1'],
        ),
        (
            {
                "type": "Container",
                "default": {"cpu": "2"},
                "max": {"cpu": "1"},
                "defaultRequest": {"cpu": "1"},
            },
            [f'{AT}.default[cpu]: Invalid value: "1": default value 2 is greater than max value 1'],
        ),
        (
            {"type": "Container", "default": {"cpu": "1"}, "defaultRequest": {"cpu": "2"}},
            [
                f'{AT}.defaultRequest[cpu]: Invalid value: "2": default request value 2 is greater '
                "than default limit value 1"
            ],
        ),
        (
            {"type": "Pod", "maxLimitRequestRatio": {"cpu": "500m"}},
            [f'{AT}.maxLimitRequestRatio[cpu]: Invalid value: "500m": ratio 500m is less than 1'],
        ),
        (
            {
                "type": "Pod",
                "min": {"cpu": "1"},
                "max": {"cpu": "2"},
                "maxLimitRequestRatio": {"cpu": "3"},
            },
            [
                f'{AT}.maxLimitRequestRatio[cpu]: Invalid value: "3": ratio 3 is greater than '
                "max/min = 2.000000"
            ],
        ),
        (
            {
                "type": "Container",
                "default": {"example.com/x": "2"},
                "defaultRequest": {"example.com/x": "1"},
            },
            [
                f'{AT}.defaultRequest[example.com/x]: Invalid value: "1": default value 2 must '
                "equal to defaultRequest value 1 in example.com/x"
            ],
        ),
    ],
)
def test_the_items(item: dict[str, Any], expected: list[str]) -> None:
    assert faults(item) == expected


def test_each_type_comes_once() -> None:
    assert faults({"type": "Pod"}, {"type": "Pod"}) == [
        'spec.limits[1].type: Duplicate value: "Pod"'
    ]


def test_updates_are_checked_alike() -> None:
    old = sample(RANGES).with_metadata(resource_version="1")
    new = sample(RANGES, spec={"limits": [{"type": "X"}]}).with_metadata(resource_version="1")
    assert len(validate_update(new, old)) == 1
