"""Objects within custom objects."""

from __future__ import annotations

from typing import Any

import pytest

from kcm.api.custom.structural_schema import parse
from kcm.apiextensions import embedded
from tests.unit.apiextensions.samples import struct

SCHEMA = parse(struct(a=struct() | {"x-kubernetes-embedded-resource": True}))
TYPE = {"apiVersion": "v1", "kind": "X"}


# After TestValidate in pkg/apiserver/schema/objectmeta/validation_test.go.
@pytest.mark.parametrize(
    ("inner", "faults"),
    [
        (TYPE, []),
        ({"kind": "X"}, ["a.apiVersion: Required value"]),
        (TYPE | {"kind": ""}, ['a.kind: Invalid value: "": must not be empty']),
        (TYPE | {"kind": 1, "apiVersion": ""}, ["a.kind: Invalid value: 1: must be a string"]),
        (
            TYPE | {"apiVersion": "a/b/c"},
            ['a.apiVersion: Invalid value: "a/b/c": unexpected GroupVersion string: a/b/c'],
        ),
        (TYPE | {"metadata": {"name": "a", "labels": {"b": "c"}}}, []),
        (
            TYPE | {"metadata": {"name": ".."}},
            ["a.metadata.name: Invalid value: \"..\": may not be '..'"],
        ),
        (
            {"metadata": {"labels": {"b": 1}}},
            ['a.metadata: Invalid value: {"labels":{"b":1}}: labels[b] must be of type string'],
        ),
        ({"metadata": 1, **TYPE}, ["a.metadata: Invalid value: 1: must be of type object"]),
    ],
)
def test_objects_within_objects_have_a_type_and_valid_metadata(
    inner: dict[str, Any], faults: list[str]
) -> None:
    assert [str(fault) for fault in embedded.check({"a": inner}, SCHEMA)] == faults


def test_labels_of_objects_within_objects_are_checked() -> None:
    value = {"a": {**TYPE, "metadata": {"labels": {"b": "x y"}, "namespace": "A"}}}
    assert [fault.field for fault in embedded.check(value, SCHEMA)] == [
        "a.metadata.namespace",
        "a.metadata.labels",
    ]
