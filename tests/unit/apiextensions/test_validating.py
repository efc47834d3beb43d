from __future__ import annotations

from typing import Any

import pytest

from kcm.api.custom.structural_schema import parse
from kcm.apiextensions import validating
from kcm.apimachinery import field_errors
from tests.unit.apiextensions.samples import TEXT, WHOLE, struct

ENUM = TEXT | {"enum": ["a", "b"]}
INT_OR_STRING = {"x-kubernetes-int-or-string": True}
ONE_OF = {"type": "object", "oneOf": [{"required": ["a"]}, {"required": ["b"]}]}

CASES: list[tuple[dict[str, Any], Any, list[str]]] = [
    (WHOLE, "x", ['f: Invalid value: "string": f in body must be of type integer: "string"']),
    (WHOLE, 1.5, ['f: Invalid value: "number": f in body must be of type integer: "number"']),
    (WHOLE, True, ['f: Invalid value: "boolean": f in body must be of type integer: "boolean"']),
    (WHOLE, 2.0, []),
    ({"type": "number"}, 1, []),
    (TEXT, None, ['f: Invalid value: "null": f in body must be of type string: "null"']),
    (TEXT | {"nullable": True}, None, []),
    (INT_OR_STRING, 1, []),
    (INT_OR_STRING, "25%", []),
    (
        INT_OR_STRING,
        [],
        ['f: Invalid value: "array": f in body must be of type integer,string: "array"'],
    ),
    (ENUM, "c", ['f: Unsupported value: "c": supported values: "a", "b"']),
    (ENUM, 3, [
        'f: Invalid value: "integer": f in body must be of type string: "integer"',
        'f: Unsupported value: 3: supported values: "a", "b"',
    ]),
    (ENUM, None, [
        'f: Invalid value: "null": f in body must be of type string: "null"',
        'f: Unsupported value: null: supported values: "a", "b"',
    ]),
    (ENUM | {"nullable": True}, None, [
        'f: Unsupported value: null: supported values: "a", "b"'
    ]),
    (TEXT | {"nullable": True, "enum": [None, "b"]}, None, [
        'f: Unsupported value: null: supported values: "null", "b"'
    ]),
    (TEXT | {"not": {}}, None, [  # a null is compared with its type and an enumeration only
        'f: Invalid value: "null": f in body must be of type string: "null"'
    ]),
    (WHOLE | {"maximum": 3}, 4, [
        "f: Invalid value: 4: f in body should be less than or equal to 3"
    ]),
    (WHOLE | {"minimum": 3, "exclusiveMinimum": True}, 3, [
        "f: Invalid value: 3: f in body should be greater than 3"
    ]),
    (WHOLE | {"multipleOf": 5}, 7, ["f: Invalid value: 7: f in body should be a multiple of 5"]),
    (TEXT | {"pattern": "^a+$"}, "b", [
        """f: Invalid value: "b": f in body should match '^a+$'"""
    ]),
    (TEXT | {"minLength": 2}, "b", [
        'f: Invalid value: "b": f in body should be at least 2 chars long'
    ]),
    (TEXT | {"maxLength": 2}, "abc", ["f: Too long: may not be more than 2 bytes"]),
    (TEXT | {"format": "date-time"}, "today", [
        'f: Invalid value: "today": f in body must be of type date-time: "today"'
    ]),
    (TEXT | {"format": "made-up"}, "today", []),
    ({"type": "array", "items": TEXT, "maxItems": 1}, ["a", "b"], [
        "f: Too many: 2: must have at most 1 items"
    ]),
    ({"type": "array", "items": WHOLE}, [1, "b"], [
        'f[1]: Invalid value: "string": f[1] in body must be of type integer: "string"'
    ]),
    (struct(a=TEXT) | {"required": ["a"]}, {}, ["f.a: Required value"]),
    ({"type": "object", "additionalProperties": WHOLE}, {"k": "x"}, [
        'f.k: Invalid value: "string": f.k in body must be of type integer: "string"'
    ]),
    ({"type": "object", "minProperties": 1}, {}, [
        "f: Invalid value: 0: f in body should have at least 1 properties"
    ]),
    (ONE_OF, {"a": 1}, []),
    (ONE_OF, {"a": 1, "b": 1}, [
        'f: Invalid value: "": "f" must validate one and only one schema (oneOf). '
        "Found 2 valid alternatives"
    ]),
    (TEXT | {"not": {"enum": ["x"]}}, "x", [
        'f: Invalid value: "": "f" must not validate the schema (not)'
    ]),
    (TEXT | {"anyOf": [{"minLength": 3}, {"enum": ["a"]}]}, "a", []),
]  # fmt: skip


@pytest.mark.parametrize(("schema", "value", "faults"), CASES)
def test_values_that_do_not_fit_are_told_in_upstreams_words(
    schema: dict[str, Any], value: Any, faults: list[str]
) -> None:
    assert [str(fault) for fault in validating.validate(value, schema, "f")] == faults


def test_sets_and_lists_with_keys_have_nothing_twice() -> None:
    keyed = {
        "type": "array",
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["n"],
        "items": struct(n=TEXT),
    }
    unique = {"type": "array", "x-kubernetes-list-type": "set", "items": TEXT}
    known = parse(struct(keyed=keyed, unique=unique))
    value = {"keyed": [{"n": "a"}, {"n": "a", "x": 1}], "unique": ["a", "b", "a"]}
    assert [str(fault) for fault in validating.lists(value, known)] == [
        'keyed[1]: Duplicate value: {"n":"a"}',
        'unique[2]: Duplicate value: "a"',
    ]


def test_faults_that_come_to_nothing_do_not_count_among_those_that_are_told() -> None:
    item = TEXT | {"anyOf": [{"enum": ["a"]}, {"minLength": 1}]}
    schema = {"type": "array", "items": item}
    assert field_errors.collect(lambda: validating.validate(["b"] * 5_000, schema)) == []
    assert len(validating.validate([""] * 5_000, schema)) == field_errors.MOST
