"""PriorityClasses."""

import pytest

from tests.samples import sample
from tests.unit.validation.outcomes import created, updated

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
    assert created(CLASSES, metadata={"name": name}, value=value) == expected


def test_pods_preempt_unless_told_otherwise() -> None:
    assert sample(CLASSES).preemption_policy == "PreemptLowerPriority"
    assert created(CLASSES, preemptionPolicy="Always") == [
        'preemptionPolicy: Unsupported value: "Always": '
        'supported values: "Never", "PreemptLowerPriority"'
    ]


def test_a_priority_never_changes() -> None:
    old = sample(CLASSES)
    assert updated(old.replace(value=1, preemption_policy="Never"), old) == [
        "value: Forbidden: may not be changed in an update.",
        'preemptionPolicy: Invalid value: "Never": field is immutable',
    ]
    assert updated(old.replace(description="text"), old) == []
