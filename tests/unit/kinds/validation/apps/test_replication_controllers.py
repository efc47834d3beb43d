"""ReplicationControllers."""

from __future__ import annotations

from typing import Any

import pytest

from tests.samples import sample
from tests.unit.kinds.validation.outcomes import validate_changed_status, validate_new_spec

KIND = "replicationcontrollers"
NOT_NEGATIVE = "must be greater than or equal to 0"


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({}, []),
        ({"replicas": -1}, [f"spec.replicas: Invalid value: -1: {NOT_NEGATIVE}"]),
        ({"minReadySeconds": -1}, [f"spec.minReadySeconds: Invalid value: -1: {NOT_NEGATIVE}"]),
        (
            {"template": None},
            ["spec.selector: Required value", "spec.template: Required value"],
        ),
        ({"template": None, "selector": {"a": "b"}}, ["spec.template: Required value"]),
    ],
)
def test_the_spec(spec: dict[str, Any], expected: list[str]) -> None:
    assert validate_new_spec(KIND, **spec) == expected


def test_the_selector_matches_the_template() -> None:
    (fault,) = validate_new_spec(KIND, selector={"app": "other"})
    assert fault.endswith("`selector` does not match template `labels`")


def test_the_status_counts_no_more_than_there_are() -> None:
    old = sample(KIND).with_metadata(resource_version="1", uid="u")
    new = old.with_status(old.status.replace(replicas=1, ready_replicas=2))
    assert validate_changed_status(new, old) == [
        "status.readyReplicas: Invalid value: 2: cannot be greater than status.replicas"
    ]
