from __future__ import annotations

from typing import Any

import pytest

from kcm.api.custom.structural_schema import parse
from kcm.apiextensions.defaulting import default
from tests.unit.apiextensions.samples import TEXT, struct

FILLED = TEXT | {"default": "d"}
NULLABLE = FILLED | {"nullable": True}


def list_of(items: Any) -> dict[str, Any]:
    return {"type": "array", "items": items}


def map_of(values: Any) -> dict[str, Any]:
    return {"type": "object", "additionalProperties": values}


def letters(*names: str) -> dict[str, Any]:
    """Returns the schema of an object whose fields have their names in capitals as defaults."""
    return struct(**{name: {"default": name.upper()} for name in names})


# After TestDefaulting and TestPruneNonNullableNullsWithoutDefaults in algorithm_test.go and
# prunenulls_test.go of pkg/apiserver/schema/defaulting.
UPSTREAM: list[tuple[str, dict[str, Any], Any, Any]] = [
    ("scalar", FILLED, 4, 4),
    ("scalar array", list_of(FILLED), [1, 2], [1, 2]),
    ("a scalar in place of an array", list_of(FILLED), 4, 4),
    (
        "object array",
        list_of(letters("a", "b", "c")),
        [{"a": 1}, {"b": 1}, {"c": 1}],
        [{"a": 1, "b": "B", "c": "C"}, {"a": "A", "b": 1, "c": "C"}, {"a": "A", "b": "B", "c": 1}],
    ),
    (
        "object array object",
        struct(array=list_of(letters("a", "b")), map=map_of(letters("a", "b")), foo=FILLED),
        {"array": [{"a": 1}, {"b": 2}], "map": {"x": {"a": 1}, "y": {"b": 2}}},
        {
            "array": [{"a": 1, "b": "B"}, {"a": "A", "b": 2}],
            "map": {"x": {"a": 1, "b": "B"}, "y": {"a": "A", "b": 2}},
            "foo": "d",
        },
    ),
    (
        "empty and null",
        list_of(letters("a")),
        [{}, {"a": 0}, {"a": ""}, {"a": None}, {"a": []}, {"a": {}}],
        [{"a": "A"}, {"a": 0}, {"a": ""}, {"a": "A"}, {"a": []}, {"a": {}}],
    ),
    ("null in a list, without a default", list_of(letters("a")), [None], [None]),
    ("null in a list", list_of(FILLED), [None], ["d"]),
    ("null in a list that may be", list_of(NULLABLE), [None], [None]),
    ("null in a map", map_of(FILLED), {"a": None}, {"a": "d"}),
    ("null in a map that may be", map_of(NULLABLE), {"a": None}, {"a": None}),
    ("null in a map, without a default", map_of(TEXT), {"a": None}, {}),
    ("null of an unknown field", map_of(True), {"a": None}, {"a": None}),
    (
        "nulls of fields",
        list_of(struct(a=FILLED, b=TEXT | {"nullable": True}, c=NULLABLE, d=TEXT)),
        [{"a": None}, {"b": None, "a": "x", "c": 1}, {"c": None, "a": "x"}, {"d": None, "c": 1}],
        [{"a": "d", "c": "d"}, {"b": None, "a": "x", "c": 1}, {"c": None, "a": "x"},
         {"c": 1, "a": "d"}],
    ),
]  # fmt: skip

CASES: list[tuple[str, dict[str, Any], Any, Any]] = [
    ("a missing field", struct(a=FILLED), {}, {"a": "d"}),
    ("a field that is there", struct(a=FILLED), {"a": "x"}, {"a": "x"}),
    ("a null that may not be", struct(a=FILLED), {"a": None}, {"a": "d"}),
    ("a null without a default", struct(a=TEXT), {"a": None}, {}),
    ("a null that may be", struct(a=FILLED | {"nullable": True}), {"a": None}, {"a": None}),
    ("nothing below what is missing", struct(a=struct(b=FILLED)), {}, {}),
    ("below a default", struct(a=struct(b=FILLED) | {"default": {}}), {}, {"a": {"b": "d"}}),
    (
        "items of a list",
        struct(a={"type": "array", "items": struct(b=FILLED)}),
        {"a": [{}, {"b": "x"}]},
        {"a": [{"b": "d"}, {"b": "x"}]},
    ),
    (
        "values of a map",
        struct(a={"type": "object", "additionalProperties": struct(b=FILLED)}),
        {"a": {"k": {}}},
        {"a": {"k": {"b": "d"}}},
    ),
]


@pytest.mark.parametrize(
    ("raw", "value", "filled"),
    [case[1:] for case in CASES + UPSTREAM],
    ids=[case[0] for case in CASES + UPSTREAM],
)
def test_defaults_are_filled_in(raw: dict[str, Any], value: Any, filled: Any) -> None:
    assert default(value, parse(raw)) == filled


def test_defaults_of_two_objects_are_not_shared() -> None:
    known = parse(struct(a=struct() | {"default": {}}))
    assert default({}, known)["a"] is not default({}, known)["a"]


def test_what_lacks_nothing_is_the_same_object() -> None:
    value = {"a": "x"}
    assert default(value, parse(struct(a=FILLED))) is value
