"""PersistentVolumeClaims."""

from __future__ import annotations

from typing import Any

import pytest

from tests.samples import sample, with_spec
from tests.unit.kinds.validation.outcomes import (
    validate_changed,
    validate_changed_status,
    validate_new_spec,
)

CLAIMS = "persistentvolumeclaims"

TOO_SMALL = "spec.resources.requests.storage: Forbidden: field can not be less than status.capacity"


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
        (
            {"dataSourceRef": {"kind": "Pod", "name": "x"}},
            [
                "spec.dataSourceRef: Invalid value: \"Pod\": must be 'PersistentVolumeClaim' when "
                "referencing the default apiGroup"
            ],
        ),
        (
            {
                "dataSource": {"kind": "PersistentVolumeClaim", "name": "x"},
                "dataSourceRef": {"kind": "PersistentVolumeClaim", "name": "y"},
            },
            ['spec: Invalid value: "spec.dataSource": must match dataSourceRef'],
        ),
        (
            {"dataSourceRef": {"apiGroup": "a.example", "kind": "Backup"}},
            ["spec.dataSourceRef.name: Required value"],
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


# TestValidatePersistentVolumeClaimUpdate
def test_a_claim_without_a_class_may_get_one_and_no_other() -> None:
    old = sample(CLAIMS).with_metadata(resource_version="1", uid="u")
    classed = old.with_spec(old.spec.replace(storage_class_name="fast"))
    assert validate_changed(classed, old) == []
    other = old.with_spec(old.spec.replace(storage_class_name="slow"))
    assert validate_changed(other, classed)[0].startswith("spec: Forbidden: spec is immutable")


def test_a_claim_may_ask_for_less_again_but_not_for_less_than_it_has() -> None:
    old = with_spec(CLAIMS, resources={"requests": {"storage": "5Gi"}})
    has = sample(CLAIMS, status={"phase": "Bound", "capacity": {"storage": "1Gi"}}).status
    old = old.with_status(has).with_metadata(resource_version="1", uid="u")
    for size, faults in (("2Gi", []), ("1Gi", [TOO_SMALL]), ("500Mi", [TOO_SMALL])):
        new = with_spec(CLAIMS, resources={"requests": {"storage": size}})
        new = new.with_status(has).with_metadata(resource_version="1", uid="u")
        assert validate_changed(new, old) == faults


# Cases of TestValidatePersistentVolumeClaimStatusUpdate (pkg/apis/core/validation).
@pytest.mark.parametrize(
    ("status", "faults"),
    [
        ({"capacity": {"storage": "10Gi"}}, []),
        ({"capacity": {"storage": "-10Gi"}},
         ['status.capacity[storage]: Invalid value: "-10Gi": must be greater than or equal to 0']),
        ({"allocatedResources": {"storage": "10Gi", "example.com/foo": "1"}}, []),
        ({"allocatedResources": {"storage": "-10Gi"}},
         ['status.allocatedResources[storage]: Invalid value: "-10Gi": must be a valid resource '
          "quantity"]),
        ({"allocatedResources": {"cpu": "1"}},
         ['status.allocatedResources: Unsupported value: "cpu": supported values: "storage"']),
        ({"allocatedResources": {"_": "1"}},
         ['status.allocatedResources: Invalid value: "_": name part must consist of ']),
        ({"allocatedResourceStatuses": {"storage": "NodeResizePending", "example.com/foo":
                                        "ControllerResizeInProgress"}}, []),
        ({"allocatedResourceStatuses": {"storage": "foo"}},
         ['status.allocatedResourceStatuses: Unsupported value: "storage": supported values: ']),
        ({"allocatedResourceStatuses": {"kubernetes.io/foo": "NodeResizePending"}},
         ['status.allocatedResourceStatuses: Unsupported value: "kubernetes.io/foo": ']),
    ],
)  # fmt: skip
def test_the_status_of_an_expansion(status: dict[str, Any], faults: list[str]) -> None:
    old = sample(CLAIMS).with_metadata(resource_version="1", uid="u")
    new = sample(CLAIMS, status=status).with_metadata(resource_version="1", uid="u")
    found = validate_changed_status(new, old)
    assert len(found) == len(faults)
    for text, fault in zip(found, faults, strict=True):
        assert text.startswith(fault)
