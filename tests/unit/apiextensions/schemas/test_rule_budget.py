from __future__ import annotations

from typing import Any

import pytest

from kcm.api.custom.structural_schema import parse
from kcm.apiextensions.cel import expressions
from kcm.apiextensions.schemas import rule_checks
from tests.unit.apiextensions.samples import TEXT, struct

pytestmark = pytest.mark.skipif(not expressions.available(), reason="no library for CEL here")

ADVICE = (
    "(try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, "
    "maps, and strings are declared)"
)


def rule(text: str, **more: str) -> dict[str, Any]:
    return {"x-kubernetes-validations": [{"rule": text, **more}]}


def faults(schema: dict[str, Any]) -> list[str]:
    return [str(fault) for fault in rule_checks.check(parse(schema), "s")]


def test_a_rule_for_every_item_of_a_list_without_limit_costs_too_much() -> None:
    every = {"type": "array", "items": TEXT | rule("self.contains(self)")}
    assert faults(struct(names=every))[0] == (
        "s.properties[names].items.x-kubernetes-validations[0].rule: Forbidden: estimated rule "
        f"cost exceeds budget by factor of more than 100x {ADVICE}"
    )
    few = {"type": "array", "maxItems": 3, "items": TEXT | {"maxLength": 9} | rule("self == 'a'")}
    assert faults(struct(names=few)) == []


def test_a_rule_is_evaluated_as_often_as_the_lists_and_maps_around_it_have_room() -> None:
    short = TEXT | {"maxLength": 1}
    inner = {"type": "array", "maxItems": 1000, "items": short | rule("true")}
    outer = {"type": "object", "maxProperties": 3000, "additionalProperties": inner}
    assert faults(struct(names=outer)) == []  # it costs nothing
    inner["items"] = short | rule("self == 'a' || self == 'b'")
    assert faults(struct(names=outer)) == [
        "s.properties[names].additionalProperties.items.x-kubernetes-validations[0].rule: "
        f"Forbidden: estimated rule cost exceeds budget by factor of 1.200000x {ADVICE}"
    ]


def test_a_message_costs_once() -> None:
    text = "self.replace('a', 'bbbbbbbbbbbbbbbbbbbb') + self.replace('b', self)"
    [fault] = faults(struct(name=TEXT | rule("true", messageExpression=text)))[:1]
    assert fault.startswith(
        "s.properties[name].x-kubernetes-validations[0].messageExpression: Forbidden: estimated "
        "messageExpression cost exceeds budget"
    )


def test_rules_that_cost_too_much_together_are_named() -> None:
    dear = TEXT | {"maxLength": 2_500_000} | rule("self.contains('ab') && self.contains('cd')")
    names = {f"name{number:02}": dear for number in range(60)}
    contributed = (
        "Forbidden: contributed to estimated rule cost total exceeding cost limit for entire "
        "OpenAPIv3 schema"
    )
    assert faults(struct(**names)) == [
        *(
            f"s.properties[name0{number}].x-kubernetes-validations[0].rule: {contributed}"
            for number in range(4)
        ),
        "s: Forbidden: x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 "
        f"schema exceeds budget by factor of 1.200001x {ADVICE}",
    ]
    assert faults(struct(name=dear)) == []
