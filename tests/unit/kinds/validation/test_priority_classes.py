"""PriorityClasses."""

import pytest

from tests.samples import sample
from tests.unit.kinds.validation.outcomes import validate_changed, validate_new

CLASSES = "priorityclasses.scheduling.k8s.io"


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("high", 1_000_000_000, []),
        (
            "high",
            1_000_000_001,
            ["value: Forbidden: maximum allowed value of a user defined priority is 1000000000"],
        ),
        ("system-node-critical", 2_000_001_000, []),
        (
            "system-mine",
            1,
            [
                "metadata.name: Forbidden: priority class names with 'system-' prefix are "
                "reserved for system use only"
            ],
        ),
    ],
)
def test_the_highest_priorities_are_the_systems(name: str, value: int, expected: list[str]) -> None:
    assert validate_new(CLASSES, metadata={"name": name}, value=value) == expected


def test_pods_preempt_unless_told_otherwise() -> None:
    assert sample(CLASSES).preemption_policy == "PreemptLowerPriority"
    assert validate_new(CLASSES, preemptionPolicy="Always") == [
        'preemptionPolicy: Unsupported value: "Always": '
        'supported values: "Never", "PreemptLowerPriority"'
    ]


def test_a_priority_never_changes() -> None:
    old = sample(CLASSES)
    assert validate_changed(old.replace(value=1, preemption_policy="Never"), old) == [
        "value: Forbidden: may not be changed in an update.",
        'preemptionPolicy: Invalid value: "Never": field is immutable',
    ]
    assert validate_changed(old.replace(description="text"), old) == []
