from __future__ import annotations

from typing import Any

import pytest

from kcm.api.custom.structural_schema import parse
from kcm.apiextensions import pruning
from tests.unit.apiextensions.samples import TEXT, schema, struct

ANY = {"x-kubernetes-preserve-unknown-fields": True}
LOOSE = {"type": "object", **ANY}
EMBEDDED = {"x-kubernetes-embedded-resource": True}


def list_of(items: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": items}


CASES: list[tuple[str, dict[str, Any], dict[str, Any], dict[str, Any], list[str]]] = [
    ("known fields stay", struct(a=TEXT), {"a": "x"}, {"a": "x"}, []),
    ("unknown ones go", struct(a=TEXT), {"a": "x", "b": 1}, {"a": "x"}, ["b"]),
    ("deep ones too", struct(a=struct(b=TEXT)), {"a": {"c": 1}}, {"a": {}}, ["a.c"]),
    (
        "in lists by index",
        struct(a={"type": "array", "items": struct(b=TEXT)}),
        {"a": [{"b": "x"}, {"c": 1}]},
        {"a": [{"b": "x"}, {}]},
        ["a[1].c"],
    ),
    (
        "a map keeps its keys",
        struct(a={"type": "object", "additionalProperties": struct(b=TEXT)}),
        {"a": {"k": {"b": "x", "c": 1}}},
        {"a": {"k": {"b": "x"}}},
        ["a.k.c"],
    ),
    ("what is preserved stays", struct(a=LOOSE), {"a": {"b": [1]}}, {"a": {"b": [1]}}, []),
    (
        "a list that preserves does so for its items, and not below their fields",
        struct(a={
            "type": "array",
            "x-kubernetes-preserve-unknown-fields": True,
            "items": struct(b=struct(c=TEXT)),
        }),
        {"a": [{"b": {"c": "x", "d": 1}, "e": {"f": 1}}]},
        {"a": [{"b": {"c": "x"}, "e": {"f": 1}}]},
        ["a[0].b.d"],
    ),
    (
        "known parts of it are pruned",
        struct(a=LOOSE | {"properties": {"b": struct(c=TEXT)}}),
        {"a": {"b": {"d": 1}, "e": 2}},
        {"a": {"b": {}, "e": 2}},
        ["a.b.d"],
    ),
    # After TestPrune in pkg/apiserver/schema/pruning/algorithm_test.go.
    (
        "lists of objects",
        struct(a=list_of(struct(a=TEXT, c=TEXT))),
        {"a": [{"a": 1}, {"b": 1}, {"a": 1, "b": 2, "c": 3}]},
        {"a": [{"a": 1}, {}, {"a": 1, "c": 3}]},
        ["a[1].b", "a[2].b"],
    ),
    (
        "what is kept in one object says nothing about those below it",
        LOOSE | {
            "properties": {
                "pruning": struct(preserving=LOOSE, pruning=struct()),
                "preserving": LOOSE | {
                    "properties": {"preserving": LOOSE, "any": ANY, "pruning": struct()}
                },
            }
        },
        {
            "unknown": {"more": 1},
            "pruning": {"unknown": 1, "apiVersion": "a", "pruning": {"unknown": 1},
                        "preserving": {"unknown": 1}},
            "preserving": {"unknown": {"more": 1}, "pruning": {"unknown": 1},
                           "preserving": {"unknown": 1}, "any": [{"a": 1}]},
        },
        {
            "unknown": {"more": 1},
            "pruning": {"pruning": {}, "preserving": {"unknown": 1}},
            "preserving": {"unknown": {"more": 1}, "pruning": {}, "preserving": {"unknown": 1},
                           "any": [{"a": 1}]},
        },
        ["pruning.unknown", "pruning.apiVersion", "pruning.pruning.unknown",
         "preserving.pruning.unknown"],
    ),
    (
        "a map that preserves does not do so for its values",
        struct(a=LOOSE | {"additionalProperties": struct(known=struct())}),
        {"a": {"foo": {"known": {"unknown": 1}, "unknown": 1}}},
        {"a": {"foo": {"known": {}}}},
        ["a.foo.known.unknown", "a.foo.unknown"],
    ),
    (
        "values of maps with a scalar type have no fields",
        struct(a=TEXT, c={"type": "object", "additionalProperties": {"type": "integer"}}),
        {"a": 1, "b": 1, "c": {"a": 1, "b": 2, "c": {"a": 1}}},
        {"a": 1, "c": {"a": 1, "b": 2, "c": {}}},
        ["b", "c.c.a"],
    ),
    (
        "an object within an object within",
        struct(a=EMBEDDED | struct(spec=struct(b=EMBEDDED | struct(spec=struct())))),
        {"a": {"kind": "A", "unknown": 1,
               "spec": {"unknown": 1, "b": {"kind": "B", "unknown": 1, "spec": {"unknown": 1}}}}},
        {"a": {"kind": "A", "spec": {"b": {"kind": "B", "spec": {}}}}},
        ["a.unknown", "a.spec.unknown", "a.spec.b.unknown", "a.spec.b.spec.unknown"],
    ),
    (
        "an object within that preserves",
        struct(a=EMBEDDED | LOOSE),
        {"a": {"kind": "A", "unknown": 1, "spec": {"unknown": 1}}},
        {"a": {"kind": "A", "unknown": 1, "spec": {"unknown": 1}}},
        [],
    ),
    (
        "an object within keeps its metadata",
        struct(a=struct(spec=struct()) | {"x-kubernetes-embedded-resource": True}),
        {"a": {"apiVersion": "v1", "kind": "X", "metadata": {"name": "n"}, "foo": 1, "spec": {}}},
        {"a": {"apiVersion": "v1", "kind": "X", "metadata": {"name": "n"}, "spec": {}}},
        ["a.foo"],
    ),
]  # fmt: skip


@pytest.mark.parametrize(
    ("raw", "value", "left", "gone"), [case[1:] for case in CASES], ids=[case[0] for case in CASES]
)
def test_fields_without_a_schema_are_dropped(
    raw: dict[str, Any], value: dict[str, Any], left: dict[str, Any], gone: list[str]
) -> None:
    dropped: list[str] = []
    assert pruning.prune(value, parse(raw), "", dropped) == left
    assert dropped == gone


def test_an_object_keeps_its_own_metadata() -> None:
    body = {"apiVersion": "g/v1", "kind": "K", "metadata": {"name": "n"}, "other": 1}
    assert pruning.root(body, schema()) == {k: v for k, v in body.items() if k != "other"}


def test_what_has_nothing_to_drop_is_the_same_object() -> None:
    value = {"a": {"b": ["x"]}}
    known = schema(a=struct(b={"type": "array", "items": TEXT}))
    assert pruning.prune(value, known) is value
