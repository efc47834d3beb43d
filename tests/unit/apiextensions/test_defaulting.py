from __future__ import annotations

from typing import Any

import pytest

from kcm.api.custom.structural_schema import parse
from kcm.apiextensions.defaulting import default
from tests.unit.apiextensions.samples import TEXT, struct

FILLED = TEXT | {"default": "d"}

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
    ("raw", "value", "filled"), [case[1:] for case in CASES], ids=[case[0] for case in CASES]
)
def test_defaults_are_filled_in(raw: dict[str, Any], value: Any, filled: Any) -> None:
    assert default(value, parse(raw)) == filled


def test_defaults_of_two_objects_are_not_shared() -> None:
    known = parse(struct(a=struct() | {"default": {}}))
    assert default({}, known)["a"] is not default({}, known)["a"]


def test_what_lacks_nothing_is_the_same_object() -> None:
    value = {"a": "x"}
    assert default(value, parse(struct(a=FILLED))) is value
