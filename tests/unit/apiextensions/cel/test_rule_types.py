from __future__ import annotations

from typing import Any

import pytest

from kcm.api.custom.structural_schema import parse
from kcm.apiextensions.cel import expressions
from kcm.apiextensions.cel.rule_types import CheckedRule, RuleTypes
from tests.unit.apiextensions.samples import TEXT, WHOLE, struct

pytestmark = pytest.mark.skipif(not expressions.available(), reason="no library for CEL here")

SCHEMA = struct(
    text=TEXT,
    number=WHOLE,
    at={"type": "string", "format": "date-time"},
    either={"x-kubernetes-int-or-string": True},
    inner=struct(leaf=TEXT),
    list={"type": "array", "items": struct(n=WHOLE)},
    map={"type": "object", "additionalProperties": WHOLE},
    unknown={"x-kubernetes-preserve-unknown-fields": True},
    namespace=TEXT,
) | {"required": ["text"]}


RULES = {"x-kubernetes-validations": [{"rule": "true"}]}


def find(
    text: str, *, root: bool = False, schema: dict[str, Any] = SCHEMA, optional_old: bool = False
) -> tuple[str, str]:
    whole = parse(schema | RULES if root else struct(node=schema | RULES))
    node = whole if root else whole.properties["node"]
    checked = RuleTypes(whole).find(text, node, optional_old=optional_old)
    return checked.type, checked.error


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("self.text == 'a'", "BOOL"),
        ("self.text", "STRING"),
        ("self.list.all(item, item.n > 1)", "BOOL"),
        ("self.list.map(item, item.n).sum()", "DYN"),
        ("self.map['a'] == 1 && 'b' in self.map", "BOOL"),
        ("self.at > timestamp('2024-01-01T00:00:00Z')", "BOOL"),
        ("self.either == 1 || self.either == '1'", "BOOL"),
        ("self.number < 1.5", "DYN"),
        ("self.namespace == self.__namespace__", "BOOL"),
        ("self.inner == oldSelf.inner", "BOOL"),
    ],
)
def test_what_the_schema_describes_has_its_type(text: str, kind: str) -> None:
    assert find(text) == (kind, "")


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("self.txt == 'a'", "undefined field 'txt'"),
        ("has(self.inner.other)", "undefined field 'other'"),
        ("self.text == 1", "no matching overload"),
        ("self.text != null", "no matching overload"),
        ("self.inner['leaf'] == 'a'", "no matching overload"),
        ("self.inner == {'leaf': 'a'}", "no matching overload"),
        ("has(self.unknown)", "undefined field 'unknown'"),
        ("self.metadata.name == 'a'", "undefined field 'metadata'"),
    ],
)
def test_what_it_does_not_describe_is_an_error(text: str, error: str) -> None:
    kind, message = find(text)
    assert not kind
    assert error in message


def test_the_root_has_what_all_objects_have() -> None:
    assert find("self.metadata.name == self.kind", root=True) == ("BOOL", "")
    assert "undefined field" in find("has(self.metadata.labels)", root=True)[1]


def test_a_rule_of_a_scalar_or_list_is_checked_too() -> None:
    assert find("self > 1", schema=WHOLE) == ("BOOL", "")
    assert find("self.size() > 1", schema={"type": "array", "items": TEXT}) == ("BOOL", "")
    assert "no matching overload" in find("self > 'a'", schema=WHOLE)[1]


def test_oldself_may_be_an_optional() -> None:
    text = "oldSelf.hasValue() && oldSelf.value() == self"
    assert find(text, schema=WHOLE, optional_old=True) == ("BOOL", "")


def test_an_error_is_told_at_its_place_in_the_expression() -> None:
    for text in ("self.text ==\n 1", "self.text ==\n nothing", "self.text ==\n"):
        assert "ERROR: <input>:" in find(text)[1]
        assert find(text)[1].partition("<input>:")[2][0] in "12"


def test_a_bracket_in_an_expression_does_not_end_what_is_around_it() -> None:
    assert "Syntax error" in find("true) || (true")[1]


def test_each_node_of_a_schema_has_its_own_type() -> None:
    whole = parse(struct(a=TEXT | RULES, b=struct(c=WHOLE) | RULES))
    types = RuleTypes(whole)
    a, b = whole.properties["a"], whole.properties["b"]
    assert types.find("self == 'a'", a, optional_old=False) == CheckedRule("BOOL", cost=2)
    assert types.find("self.c == 1", b, optional_old=False) == CheckedRule("BOOL", cost=2)
    assert types.find("self.c == 1", a, optional_old=False).type == ""


def test_a_schema_that_protobuf_cannot_express_costs_the_other_nodes_nothing() -> None:
    odd = struct(**{"a": TEXT, "a" * 70_000: TEXT}) | RULES
    whole = parse(struct(odd=odd, plain=TEXT | RULES))
    types = RuleTypes(whole)
    assert types.find("self == 1", whole.properties["plain"], optional_old=False).type == ""
