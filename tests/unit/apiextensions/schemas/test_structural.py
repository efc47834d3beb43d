from __future__ import annotations

import time
from typing import Any

import pytest

from kcm.apiextensions.schemas import structural
from tests.unit.apiextensions.samples import TEXT, struct

LIST = {"type": "array", "items": struct(n=TEXT), "x-kubernetes-list-type": "map"}

CASES: list[tuple[dict[str, Any], list[str]]] = [
    (struct(spec=TEXT), []),
    ({}, ["s.type: Required value: must not be empty at the root"]),
    ({"type": "string"}, ['s.type: Invalid value: "string": must be object at the root']),
    (
        struct(a={}),
        ["s.properties[a].type: Required value: must not be empty for specified object fields"],
    ),
    (struct(a={"x-kubernetes-int-or-string": True}), []),
    (struct(a={"type": "array"}), ["s.properties[a].items: Required value: must be specified"]),
    (
        struct(a={"type": "array", "items": {}}),
        ["s.properties[a].items.type: Required value: must not be empty for specified array items"],
    ),
    (
        struct(a=TEXT | {"allOf": [{"type": "string"}]}),
        ["s.properties[a].allOf[0].type: Forbidden: must be empty to be structural"],
    ),
    (
        struct(a=TEXT | {"pattern": "("}),
        [
            's.properties[a].pattern: Invalid value: "(": must be a valid regular expression, '
            "but isn't: error parsing regexp: missing closing ): `(`"
        ],
    ),
    (
        struct(a=TEXT | {"$ref": "#/x"}),
        ["s.properties[a].$ref: Forbidden: $ref is not supported"],
    ),
    (
        struct(metadata=struct(labels=struct())),
        [
            "s.properties[metadata]: Forbidden: must not specify anything other than name and "
            "generateName, but metadata is implicitly specified"
        ],
    ),
    (struct(metadata=struct(name=TEXT)), []),
    (
        struct(a=LIST),
        [
            "s.properties[a].x-kubernetes-list-map-keys: Required value: must not be empty if "
            "x-kubernetes-list-type is map"
        ],
    ),
    (
        struct(a=TEXT | {"x-kubernetes-preserve-unknown-fields": False}),
        [
            "s.properties[a].x-kubernetes-preserve-unknown-fields: Invalid value: false: "
            "must be true or undefined"
        ],
    ),
    (
        struct(a=TEXT | {"default": 1}),
        [
            's.properties[a].default: Invalid value: "integer": s.properties[a].default in body '
            'must be of type string: "integer"'
        ],
    ),
    (
        struct(a=struct() | {"default": {"b": 1}}),
        ['s.properties[a].default: Invalid value: {"b":1}: must not have unknown fields'],
    ),
    (
        struct(a=struct(b=TEXT) | {"additionalProperties": TEXT}),
        [
            "s.properties[a].additionalProperties: Forbidden: additionalProperties and properties "
            "are mutual exclusive"
        ],
    ),
    (
        struct(a=struct() | {"oneOf": [{"required": ["b"], "properties": {"b": {}}}]}),
        [
            "s.properties[a].properties[b]: Required value: because it is defined in "
            "s.properties[a].oneOf[0].properties[b]"
        ],
    ),
    (
        struct(a=TEXT | {"x-kubernetes-validations": [{"rule": " "}]}),
        ["s.properties[a].x-kubernetes-validations[0].rule: Required value: rule is not specified"],
    ),
]


@pytest.mark.parametrize(("schema", "faults"), CASES)
def test_what_keeps_a_schema_from_being_structural(
    schema: dict[str, Any], faults: list[str]
) -> None:
    assert [str(fault) for fault in structural.check(schema, "s")] == faults


@pytest.mark.parametrize(
    "rubbish",
    [
        [],
        {"properties": 3},
        {"properties": {"a": None}},
        {"type": "object", "required": 3},
        {"type": "object", "allOf": [1]},
        {"type": "object", "x-kubernetes-validations": {"rule": "x"}},
        {"type": "object", "properties": {"a": {"type": "string", "maxLength": "x"}}},
        {"type": "object", "oneOf": [{"properties": {"a": 1}}]},
    ],
)
def test_rubbish_is_refused_and_does_no_harm(rubbish: Any) -> None:
    assert structural.check(rubbish, "s")


def test_patterns_have_so_many_classes_of_unicode_together() -> None:
    pattern = TEXT | {"pattern": r"\p{L}\P{N}" * 100}
    schema = struct(**{f"f{n}": pattern for n in range(26)})
    before = time.process_time()
    (error,) = structural.check(schema, "s")
    assert "more than 5000 classes of Unicode" in str(error)
    assert time.process_time() - before < 5


def list_of(items: dict[str, Any], kind: str, **more: Any) -> dict[str, Any]:
    return {"type": "array", "items": items, "x-kubernetes-list-type": kind, **more}


@pytest.mark.parametrize(
    ("schema", "fault"),
    [
        (
            list_of(TEXT | {"nullable": True}, "set"),
            "items.nullable: Forbidden: cannot be nullable",
        ),
        (list_of(struct(n=TEXT), "set"), "items.x-kubernetes-map-type: Invalid value: null"),
        (
            list_of(list_of(TEXT, "set"), "set"),
            'items.x-kubernetes-list-type: Invalid value: "set": must be atomic',
        ),
        (
            list_of(
                struct(n=TEXT | {"nullable": True, "default": "x"}),
                "map",
                **{"x-kubernetes-list-map-keys": ["n"]},
            ),
            "items.properties[n].nullable: Forbidden: this property is in",
        ),
    ],
)
def test_items_must_be_told_apart(schema: dict[str, Any], fault: str) -> None:
    [found] = structural.check(struct(a=schema), "s")
    assert str(found).startswith(f"s.properties[a].{fault}")


@pytest.mark.parametrize(
    ("path", "fault"),
    [
        (".a", ""),
        ("['a']", ""),
        (" ", "must be non-empty if specified"),
        (".b", "must be a valid path"),
        (".a[0", "must be a valid path"),
        (".", "must be a valid path"),
    ],
)
def test_the_field_of_a_rule_is_one_of_the_schema(path: str, fault: str) -> None:
    rule = {"rule": "true", "fieldPath": path}
    found = structural.check(struct(a=TEXT) | {"x-kubernetes-validations": [rule]}, "s")
    assert [fault in str(one) for one in found[:1]] == ([True] if fault else [])


def test_a_rule_must_be_true_or_false() -> None:
    rule = {"rule": "self.a", "messageExpression": "1"}
    found = structural.check(struct(a=TEXT) | {"x-kubernetes-validations": [rule]}, "s")
    assert [fault.detail for fault in found] == [
        "cel expression must evaluate to a bool",
        "messageExpression must evaluate to a string",
    ]


def test_metadata_of_an_embedded_object_holds_no_objects_and_no_defaults_of_maps() -> None:
    labels = {"type": "object", "additionalProperties": TEXT | {"default": "x"}}
    embedded = struct(metadata=struct(labels=labels)) | {"x-kubernetes-embedded-resource": True}
    [found] = structural.check(struct(a=embedded), "s")
    assert found.detail == (
        "must not be set inside additionalProperties applying to object metadata"
    )


def test_properties_may_stand_beside_any_others() -> None:
    assert not structural.check(struct(a=struct(b=TEXT) | {"additionalProperties": True}), "s")
    assert structural.check(struct(a=struct(b=TEXT) | {"additionalProperties": TEXT}), "s")
