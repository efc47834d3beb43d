"""PodDisruptionBudgets."""

from typing import Any

import pytest

from tests.samples import sample
from tests.unit.kinds.validation.outcomes import validate_changed_status, validate_new

BUDGETS = "poddisruptionbudgets.policy"


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({}, []),
        ({"maxUnavailable": 1, "unhealthyPodEvictionPolicy": "AlwaysAllow"}, []),
        (
            {"minAvailable": 1, "maxUnavailable": 1},
            [
                'spec: Invalid value: {"minAvailable":1,"maxUnavailable":1}: '
                "minAvailable and maxUnavailable cannot be both set"
            ],
        ),
        (
            {"minAvailable": -1},
            ["spec.minAvailable: Invalid value: -1: must be greater than or equal to 0"],
        ),
        (
            {"maxUnavailable": "200%"},
            ['spec.maxUnavailable: Invalid value: "200%": must not be greater than 100%'],
        ),
        (
            {"unhealthyPodEvictionPolicy": "X"},
            [
                'spec.unhealthyPodEvictionPolicy: Unsupported value: "X": '
                'supported values: "AlwaysAllow", "IfHealthyBudget"'
            ],
        ),
        (
            {"selector": {"matchExpressions": [{"key": "a", "operator": "Is"}]}},
            [
                'spec.selector.matchExpressions[0].operator: Invalid value: "Is": '
                "not a valid selector operator"
            ],
        ),
    ],
)
def test_a_budget_is_checked_as_upstream_does(spec: dict[str, Any], expected: list[str]) -> None:
    assert validate_new(BUDGETS, spec=spec) == expected


def test_the_status_of_a_budget_counts_and_has_whole_conditions() -> None:
    condition = {
        "type": "DisruptionAllowed",
        "status": "True",
        "reason": "SufficientPods",
        "lastTransitionTime": "2024-01-01T00:00:00Z",
    }
    old = sample(BUDGETS)
    new = sample(
        BUDGETS, status={"conditions": [condition, {"type": "DisruptionAllowed", "status": "Yes"}]}
    )
    assert validate_changed_status(new, old) == [
        'status.conditions[1].type: Duplicate value: "DisruptionAllowed"',
        'status.conditions[1].status: Unsupported value: "Yes": '
        'supported values: "False", "True", "Unknown"',
        "status.conditions[1].lastTransitionTime: Required value: must be set",
        "status.conditions[1].reason: Required value: must be set",
    ]
    assert validate_changed_status(sample(BUDGETS, status={"expectedPods": -1}), old) == [
        "status.expectedPods: Invalid value: -1: must be greater than or equal to 0"
    ]
