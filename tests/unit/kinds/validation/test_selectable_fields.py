"""The selectable fields of custom kinds, as a table after upstream's."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.kinds.validation.outcomes import validate_new_spec

DEFINITIONS = "customresourcedefinitions.apiextensions.k8s.io"
TEXT = {"type": "string"}
SPEC = {
    "type": "object",
    "properties": {
        "strings": TEXT,
        "color": TEXT | {"enum": ["red", "blue"]},
        "when": TEXT | {"format": "date-time"},
        "count": {"type": "integer"},
        "ready": {"type": "boolean"},
        "ratio": {"type": "number"},
        "list": {"type": "array", "items": TEXT},
        "either": {"x-kubernetes-int-or-string": True},
        "labels": {"type": "object", "additionalProperties": TEXT},
        "any": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        **{f"f{index}": TEXT for index in range(9)},
    },
}
META = {"type": "object", "properties": {"name": TEXT}}
SCHEMA = {"type": "object", "properties": {"spec": SPEC, "metadata": META}}
WHERE = "spec.versions[0].selectableFields"
WRONG_TYPE = (
    "must point to a field of type string, boolean or integer. "
    "Enum string fields and strings with formats are allowed."
)


def validate(*paths: str | None) -> list[str]:
    fields = [{} if path is None else {"jsonPath": path} for path in paths]
    version: dict[str, Any] = {
        "name": "v1", "served": True, "storage": True, "selectableFields": fields,
        "schema": {"openAPIV3Schema": SCHEMA},
    }  # fmt: skip
    return validate_new_spec(DEFINITIONS, versions=[version])


def fault(path: str, detail: str, index: int = 0) -> str:
    return f'{WHERE}[{index}].jsonPath: Invalid value: "{path}": {detail}'


def test_scalars_of_the_schema_can_be_selected() -> None:
    paths = ("strings", "color", "when", "count", "ready", "labels.tier")
    assert validate(*(f".spec.{name}" for name in paths)) == []


# After the cases with selectableFields of TestValidateCustomResourceDefinition in
# pkg/apis/apiextensions/validation/validation_test.go, and TestValidateFieldPath in
# pkg/apiserver/schema/cel/validation_test.go.
@pytest.mark.parametrize(
    ("path", "detail"),
    [
        (".spec.ratio", WRONG_TYPE),
        (".spec.list", WRONG_TYPE),
        (".spec.either", WRONG_TYPE),
        (".spec", WRONG_TYPE),
        (".metadata.name", "must not point to fields in metadata"),
        (".spec.absent", "is an invalid path: does not refer to a valid field"),
        (".spec.any.field", "is an invalid path: does not refer to a valid field"),
        (".spec.strings.more", "is an invalid path: does not refer to a valid field"),
        (".spec..strings", "is an invalid path: does not refer to a valid field"),
        (".spec.'strings'", "is an invalid path: does not refer to a valid field"),
        (".spec.", "is an invalid path: unexpected end of JSON path"),
        (".spec.list[0]", "is an invalid path: array notation is not allowed"),
        (".spec['strings']", "is an invalid path: array notation is not allowed"),
        ("spec.strings", "is an invalid path: expected [ or . but got: spec"),
        ("]", "is an invalid path: expected [ or . but got: ]"),
    ],
)
def test_other_paths_are_refused_in_upstreams_words(path: str, detail: str) -> None:
    assert validate(path) == [fault(path, detail)]


def test_a_path_is_needed_and_no_path_comes_twice() -> None:
    assert validate(None, "") == [
        f"{WHERE}[0].jsonPath: Required value",
        f"{WHERE}[1].jsonPath: Required value",
    ]
    assert validate(".spec.count", ".spec.count") == [
        f'{WHERE}[1].jsonPath: Duplicate value: ".spec.count"'
    ]


def test_eight_fields_are_enough() -> None:
    eight = [f".spec.f{index}" for index in range(8)]
    assert validate(*eight) == []
    assert validate(*eight, ".spec.f8") == [f"{WHERE}: Too many: 9: must have at most 8 items"]


def test_a_path_of_any_length_is_checked_once() -> None:
    long = "." + "'" * 200_000
    assert validate(long)[0].endswith("is an invalid path: does not refer to a valid field")
