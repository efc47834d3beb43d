"""The cases follow pkg/apis/storagemigration/validation/validation_test.go, Kubernetes 1.36."""

from __future__ import annotations

from typing import Any

import pytest

from tests.samples import sample
from tests.unit.kinds.validation.outcomes import (
    validate_changed,
    validate_changed_status,
    validate_new,
)

MIGRATIONS = "storageversionmigrations.storagemigration.k8s.io"
RESOURCE = {"group": "example.com", "resource": "widgets"}
TRUE = {"status": "True", "reason": "R", "lastTransitionTime": "2026-01-01T00:00:00Z"}
NO_RESOURCE = "spec.resource.resource: Required value: resource is required to be set"


def migration(*conditions: str, **status: Any) -> Any:
    kinds = [{"type": kind, **TRUE} for kind in conditions]
    made = sample(MIGRATIONS, status={"conditions": kinds, **status})
    return made.with_metadata(resource_version="1")


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({}, ""),
        ({"group": None}, ""),
        (
            {"resource": ""},
            "spec.resource.resource: Required value: resource is required to be set",
        ),
    ],
)
def test_a_migration_names_a_kind(changes: dict[str, Any], fault: str) -> None:
    found = validate_new(MIGRATIONS, spec={"resource": RESOURCE | changes})
    assert found == ([fault] if fault else [])


@pytest.mark.parametrize("field", ["group", "resource"])
def test_the_kind_stays(field: str) -> None:
    old = migration()
    resource = old.spec.resource.replace(**{field: "other"})
    new = old.with_spec(old.spec.replace(resource=resource))
    [fault] = validate_changed(new, old)
    assert fault.startswith("spec: Invalid value")


@pytest.mark.parametrize(
    ("new", "old", "fault"),
    [
        (migration("Running", resourceVersion="5"), migration(), ""),
        (migration("Succeeded"), migration("Running"), ""),
        (migration("Succeeded", "Failed"), migration(), "Both success and failed conditions"),
        (migration(), migration("Succeeded"), "Success condition cannot be set to false"),
        (migration(), migration("Failed"), "Failed condition cannot be set to false"),
        (migration(resourceVersion="x"), migration(), "failed to parse resource version"),
        (migration(resourceVersion="-1"), migration(), "must be greater than or equal to 0"),
        (migration(resourceVersion="2"), migration(resourceVersion="1"), "field is immutable"),
    ],
)
def test_a_status_does_not_contradict_itself(new: Any, old: Any, fault: str) -> None:
    found = validate_changed_status(new, old)
    assert bool(found) == bool(fault)
    assert all(fault in text for text in found)
