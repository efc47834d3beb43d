"""PersistentVolumeClaims."""

from __future__ import annotations

from typing import Any

import pytest

from tests.samples import sample, with_spec
from tests.unit.validation.outcomes import validate_changed, validate_new_spec

CLAIMS = "persistentvolumeclaims"


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({}, []),
        (
            {"accessModes": None},
            ["spec.accessModes: Required value: at least 1 access mode is required"],
        ),
        (
            {"accessModes": ["ReadWriteOncePod", "ReadOnlyMany"]},
            ["spec.accessModes: Forbidden: may not use ReadWriteOncePod with other access modes"],
        ),
        ({"resources": {}}, ["spec.resources[storage]: Required value"]),
        (
            {"resources": {"requests": {"storage": "0"}}},
            ['spec.resources[storage]: Invalid value: "0": must be greater than zero'],
        ),
        (
            {"volumeMode": "X"},
            ['spec.volumeMode: Unsupported value: "X": supported values: "Block", "Filesystem"'],
        ),
    ],
)
def test_the_spec(spec: dict[str, Any], expected: list[str]) -> None:
    assert validate_new_spec(CLAIMS, **spec) == expected


def test_a_bound_claim_may_grow_and_no_other() -> None:
    old = sample(CLAIMS).with_metadata(resource_version="1", uid="u")
    more = with_spec(CLAIMS, resources={"requests": {"storage": "2Gi"}})
    more = more.with_metadata(resource_version="1", uid="u")
    assert validate_changed(more, old)[0].startswith("spec: Forbidden: spec is immutable")
    bound = old.with_status(old.status.replace(phase="Bound"))
    assert validate_changed(more, bound) == []
