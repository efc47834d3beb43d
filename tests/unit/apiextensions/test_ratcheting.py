"""What an update may leave as it was. The cases follow
test/e2e/apimachinery/crd_validation_ratcheting.go, Kubernetes 1.36.
"""

from __future__ import annotations

from typing import Any

import pytest

from kcm.api.custom.structural_schema import MISSING, parse
from kcm.apiextensions import ratcheting, validating
from kcm.apiextensions.cel import expressions, rules
from tests.unit.apiextensions.samples import TEXT, WHOLE, struct

RULE = {"x-kubernetes-validations": [{"rule": "self == 'good'"}]}
ENUM = {"enum": ["good"]}
BROKEN: dict[str, Any] = {
    "field": "old",
    "struct": {"field": "old"},
    "list": [{"key": "a", "field": "old"}, {"key": "b", "field": "old"}],
    "map": {"a": {"field": "old"}},
}


def describe(strict: dict[str, Any]) -> dict[str, Any]:
    """Returns a schema with a strict field in each place where it can be told from others."""
    field = TEXT | strict
    items = struct(key=TEXT, field=field)
    listed = {"type": "array", "items": items, "x-kubernetes-list-type": "map"}
    return struct(
        field=field,
        struct=struct(field=field),
        list=listed | {"x-kubernetes-list-map-keys": ["key"]},
        map={"type": "object", "additionalProperties": struct(field=field)},
        other=TEXT,
    )


def find(schema: dict[str, Any], new: Any, old: Any) -> list[str]:
    """Returns the paths of what is wrong with an update."""
    faults = validating.validate(new, schema, old=old)
    faults += rules.check(parse(schema), new, old, faults)
    return [fault.field for fault in faults]


@pytest.fixture(params=[ENUM, RULE], ids=["enum", "rule"])
def schema(request: pytest.FixtureRequest) -> dict[str, Any]:
    if request.param is RULE and not expressions.available():
        pytest.skip("no library for CEL here")
    return describe(request.param)


def test_what_was_wrong_before_and_is_unchanged_may_stay(schema: dict[str, Any]) -> None:
    assert find(schema, BROKEN | {"other": "new"}, BROKEN) == []
    there = {**BROKEN, "list": list(reversed(BROKEN["list"]))}
    assert find(schema, there, BROKEN) == []


def test_what_has_changed_must_be_right(schema: dict[str, Any]) -> None:
    changed = {
        "field": "new",
        "struct": {"field": "new"},
        "list": [{"key": "a", "field": "new"}, {"key": "b", "field": "old"}],
        "map": {"a": {"field": "old"}, "b": {"field": "old"}},
    }
    found = [path.replace("map[b]", "map.b") for path in find(schema, changed, BROKEN)]
    assert found == ["field", "struct.field", "list[0].field", "map.b.field"]


def test_all_of_a_new_object_must_be_right(schema: dict[str, Any]) -> None:
    assert len(find(schema, BROKEN, None)) == 5


@pytest.mark.parametrize("strict", [ENUM, RULE], ids=["enum", "rule"])
def test_items_that_have_no_keys_are_not_told_from_others(strict: dict[str, Any]) -> None:
    schema = struct(list={"type": "array", "items": TEXT | strict}, other=TEXT)
    assert find(schema, {"list": ["old"], "other": "x"}, {"list": ["old"]}) == []
    assert find(schema, {"list": ["old", "good"]}, {"list": ["old"]}) == ["list[0]"]


@pytest.mark.parametrize(("name", "found"), [("number", ["number"]), ("numbers", ["numbers.a"])])
def test_a_value_of_another_type_is_another_value(name: str, found: list[str]) -> None:
    limited = WHOLE | {"minimum": 5}
    schema = struct(number=limited, numbers=struct(a=limited))
    old, new = ({"number": one, "numbers": {"a": one}}[name] for one in (1, True))
    assert find(schema, {name: old}, {name: old}) == []
    assert find(schema, {name: new}, {name: old}) == found
    assert not ratcheting.is_unchanged([{"a": 1}], [{"a": 1.0}])
    assert not ratcheting.is_unchanged(None, MISSING)


@pytest.mark.skipif(not expressions.available(), reason="no library for CEL here")
@pytest.mark.parametrize(
    ("rule", "found"),
    [
        ({"rule": "self != oldSelf"}, ["struct.field"]),
        (
            {
                "rule": "!oldSelf.hasValue() || self != oldSelf.value()",
                "optionalOldSelf": True,
            },
            ["struct.field"],
        ),
        ({"rule": "self != 'old'"}, []),
    ],
)
def test_rules_about_the_change_hold_for_what_is_unchanged(
    rule: dict[str, Any], found: list[str]
) -> None:
    schema = struct(struct=struct(field=TEXT | {"x-kubernetes-validations": [rule]}))
    assert find(schema, {"struct": {"field": "old"}}, {"struct": {"field": "old"}}) == found


@pytest.mark.skipif(not expressions.available(), reason="no library for CEL here")
def test_the_object_itself_always_counts_as_changed() -> None:
    rule = {"x-kubernetes-validations": [{"rule": "has(self.a)"}]}
    assert find(struct(a=TEXT) | rule, {}, {}) == ["<nil>"]
    assert find(struct(a=TEXT) | {"required": ["a"]}, {}, {}) == ["a"]
