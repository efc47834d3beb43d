from __future__ import annotations

import resource
import sys
import time
from random import Random
from typing import Any

import pytest

from kcm.api.custom.structural_schema import parse
from kcm.apiextensions.cel import expressions, rules
from kcm.apiextensions.cel.evaluator import RuleEvaluator
from tests.unit.apiextensions.samples import TEXT, WHOLE, struct

pytestmark = pytest.mark.skipif(not expressions.available(), reason="no library for CEL here")


def build_schema(*body: dict[str, Any], **properties: Any) -> dict[str, Any]:
    return struct(**properties) | {"x-kubernetes-validations": list(body)}


def list_broken_rules(schema: dict[str, Any], new: Any, old: Any = None) -> list[str]:
    known = parse(struct(spec=schema))
    before = None if old is None else {"spec": old}
    return [str(fault) for fault in rules.check(known, {"spec": new}, before, [])]


def test_a_rule_that_fails_gives_its_message() -> None:
    schema = build_schema(
        {"rule": "self.a <= self.b", "message": "a is too large"}, a=WHOLE, b=WHOLE
    )
    assert list_broken_rules(schema, {"a": 1, "b": 2}) == []
    assert list_broken_rules(schema, {"a": 3, "b": 2}) == ["spec: Invalid value: a is too large"]


def test_without_a_message_the_rule_itself_is_told() -> None:
    schema = build_schema({"rule": "self.a > 1"}, a=WHOLE)
    assert list_broken_rules(schema, {"a": 1}) == ["spec: Invalid value: failed rule: self.a > 1"]


def test_a_message_may_be_computed_and_a_field_and_reason_named() -> None:
    rule = {
        "rule": "self.a > 1",
        "messageExpression": "'a is ' + string(self.a)",
        "fieldPath": ".a",
        "reason": "FieldValueForbidden",
    }
    assert list_broken_rules(build_schema(rule, a=WHOLE), {"a": 1}) == ["spec.a: Forbidden: a is 1"]


def test_transition_rules_hold_for_updates_only() -> None:
    schema = build_schema({"rule": "self.a == oldSelf.a", "message": "a stays"}, a=WHOLE)
    assert list_broken_rules(schema, {"a": 1}) == []
    assert list_broken_rules(schema, {"a": 1}, {"a": 1}) == []
    assert list_broken_rules(schema, {"a": 1}, {"a": 2}) == ["spec: Invalid value: a stays"]


def test_a_rule_may_take_the_old_value_as_an_optional() -> None:
    rule = {
        "rule": "oldSelf.hasValue() || self.a == 0",
        "optionalOldSelf": True,
        "message": "begins with 0",
    }
    schema = build_schema(rule, a=WHOLE)
    assert list_broken_rules(schema, {"a": 1}) == ["spec: Invalid value: begins with 0"]
    assert list_broken_rules(schema, {"a": 1}, {"a": 0}) == []


def test_items_of_a_list_with_keys_are_compared_by_them() -> None:
    item = build_schema({"rule": "self.v >= oldSelf.v", "message": "shrinks"}, n=TEXT, v=WHOLE)
    schema = struct(
        items={
            "type": "array",
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["n"],
            "items": item,
        }
    )
    old = {"items": [{"n": "a", "v": 5}, {"n": "b", "v": 1}]}
    new = {"items": [{"n": "b", "v": 2}, {"n": "a", "v": 4}]}
    assert list_broken_rules(schema, new, old) == ["spec.items[1]: Invalid value: shrinks"]


def test_names_that_cel_cannot_write_are_escaped() -> None:
    schema = build_schema(
        {"rule": "self.a__dash__b == 'x' && self.__namespace__ == 'y'"},
        **{"a-b": TEXT, "namespace": TEXT},
    )
    assert list_broken_rules(schema, {"a-b": "x", "namespace": "y"}) == []


@pytest.mark.parametrize(
    "rule",
    [
        "self.s.lowerAscii() == 'ab'",
        "self.l.isSorted() && self.l.sum() == 6 && self.l.max() == 3 && self.l.min() == 1",
        "self.l.exists(x, x == 2)",
        "self.s.find('[A-Z]') == 'A' && self.s.findAll('[A-Za-z]').size() == 2",
        "self.?nothing.orValue(3) == 3",
        "self.t > timestamp('2020-01-01T00:00:00Z') && self.d == duration('90s')",
        "self.n / 2.0 == 0.5",
        "self.m.all(k, self.m[k] > 0)",
    ],
)  # fmt: skip
def test_functions_and_types_of_kubernetes_are_there(rule: str) -> None:
    schema = build_schema(
        {"rule": rule},
        s=TEXT,
        l={"type": "array", "items": WHOLE},
        t=TEXT | {"format": "date-time"},
        d=TEXT | {"format": "duration"},
        n={"type": "number"},
        m={"type": "object", "additionalProperties": WHOLE},
    )
    value = {
        "s": "aB".swapcase(),
        "l": [1, 2, 3],
        "t": "2026-01-01T00:00:00Z",
        "d": "1m30s",
        "n": 1,
        "m": {"a-b": 1},
    }
    assert list_broken_rules(schema, value) == []


def test_rules_over_named_formats_are_checked() -> None:
    known = parse(
        struct(
            spec=build_schema(
                {"rule": "!format.dns1123Label().validate(self.a).hasValue()"}, a=TEXT
            )
        )
    )
    assert rules.find_unchecked(known) == set()
    assert rules.check(known, {"spec": {"a": "1"}}, None, []) == []
    assert len(rules.check(known, {"spec": {"a": "A"}}, None, [])) == 1


def test_without_the_library_rules_are_not_checked_but_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    expressions.compile_expression.cache_clear()
    monkeypatch.setattr(expressions, "_environment", lambda: None)
    known = parse(struct(spec=build_schema({"rule": "self.a == 1"}, a=WHOLE)))
    assert rules.find_unchecked(known) == {"the library for CEL"}
    assert rules.check(known, {"spec": {"a": 2}}, None, []) == []
    expressions.compile_expression.cache_clear()


@pytest.mark.parametrize(
    ("rule", "told"),
    [
        ("self.a > 1", "no such key: a evaluating rule: self.a > 1"),
        ("[1][5] == 1", "index out of bounds: 5 evaluating rule: [1][5] == 1"),
        ("1 / int('0') == 1", "division by zero evaluating rule: 1 / int('0') == 1"),
        (
            "dyn([1]) + dyn('a') == 1",
            "'no such overload': call arguments did not match a supported operator, function or "
            "macro signature for rule: dyn([1]) + dyn('a') == 1",
        ),
    ],
)
def test_a_rule_that_cannot_be_evaluated_fails(rule: str, told: str) -> None:
    [message] = list_broken_rules(build_schema({"rule": rule}, a=WHOLE), {})
    assert message == f'spec: Invalid value: "object": {told}'


def test_after_a_rule_with_too_many_steps_no_other_is_evaluated() -> None:
    inner = "self.all(y, self.all(z, x == y))"
    schema = {"type": "array", "items": WHOLE} | {
        "x-kubernetes-validations": [{"rule": f"self.all(x, {inner})"}, {"rule": "false"}]
    }
    [message] = list_broken_rules(schema, [1] * 200)
    assert "call cost exceeds limit for rule: self.all(x, " in message


def test_a_bad_expression_in_a_rule_is_told() -> None:
    messages = list_broken_rules(
        build_schema({"rule": "self.s.find('(') == ''"}, s=TEXT), {"s": "x"}
    )
    assert "Illegal regex: error parsing regexp: missing closing ): `(`" in messages[0]


def test_an_expression_in_a_rule_takes_linear_time() -> None:
    before = time.process_time()
    rule = "self.s.find('^(a+)+$') == '' && !self.s.matches('^(a+)+$')"
    assert list_broken_rules(build_schema({"rule": rule}, s=TEXT), {"s": "a" * 40 + "!"}) == []
    assert time.process_time() - before < 5


def build_doubling_rule(times: int) -> str:
    """Returns a rule that doubles its text so many times."""
    inner = f"size(x{times}) > 0"
    for n in range(times, 0, -1):
        inner = f"[x{n - 1} + x{n - 1}].all(x{n}, {inner})"
    return f"[self.s].all(x0, {inner})"


OUT_OF_BUDGET = (
    'spec: Invalid value: "object": validation failed due to running out of cost budget, '
    "no further validation rules will be run"
)


@pytest.mark.parametrize(
    "rule",
    [
        build_doubling_rule(24),
        "['x'].map(a, [a, a, a, a, a, a, a, a, a, a].map(b, self.s.replace('a', self.s))"
        ".join('')).size() == 0",
        "self.l.all(x, self.l.isSorted() && self.l.sum() > 0)",
    ],
    ids=["doubled", "replaced", "lists again and again"],
)
def test_a_rule_that_costs_too_much_is_cut_and_told(rule: str) -> None:
    schema = build_schema(
        {"rule": rule}, {"rule": "false"}, s=TEXT, l={"type": "array", "items": WHOLE}
    )
    before, memory = time.process_time(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    messages = list_broken_rules(schema, {"s": "a" * 30_000, "l": list(range(9_000))})
    assert messages == [OUT_OF_BUDGET]
    assert time.process_time() - before < 5
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - memory < 300_000  # KiB


def test_after_a_rule_that_was_cut_others_are_evaluated() -> None:
    costly = "self.s.replace('a', self.s).replace('a', self.s).size() > 0"
    value = {"s": "a" * 30_000}
    assert list_broken_rules(build_schema({"rule": costly}, s=TEXT), value) == [OUT_OF_BUDGET]
    small = build_schema({"rule": "self.s.replace('a', 'b') == 'bc'", "message": "no"}, s=TEXT)
    assert list_broken_rules(small, {"s": "ac"}) == []
    assert list_broken_rules(small, {"s": "bd"}) == ["spec: Invalid value: no"]


def test_rules_of_many_items_share_one_budget() -> None:
    item = build_schema({"rule": "!self.s.matches('^[ab]*a[ab]{900}$')"}, s=TEXT)
    schema = struct(items={"type": "array", "items": item}, all=TEXT)
    text = "".join(Random(1).choices("ab", k=9_000)) + "c"
    before = time.process_time()
    items = list_broken_rules(schema, {"items": [{"s": text} for _ in range(2_000)]})
    assert "running out of cost budget" in items[-1]
    assert time.process_time() - before < 10


def test_a_rule_over_much_is_evaluated_where_it_could_be_cut() -> None:
    rule = "self.l.all(x, self.t > timestamp('2020-01-01T00:00:00Z') && self.d == duration('90s'))"
    schema = build_schema(
        {"rule": rule, "messageExpression": "'has ' + self.l.map(x, string(x)).join(',')"},
        l={"type": "array", "items": WHOLE},
        t=TEXT | {"format": "date-time"},
        d=TEXT | {"format": "duration"},
        b=TEXT | {"format": "byte"},
    )
    value = {"l": list(range(2_000)), "t": "2026-01-01T00:00:00Z", "d": "1m30s", "b": "YQ=="}
    assert list_broken_rules(schema, value) == []
    refused = {**value, "d": "1s", "l": [1, 2]}
    assert list_broken_rules(schema, refused) == ["spec: Invalid value: has 1,2"]


def test_a_process_that_does_not_start_is_a_fault_of_the_server_and_not_of_the_rule(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sys, "executable", "/bin/false")
    with pytest.raises(RuntimeError, match="ended at its start, with code 1"):
        RuleEvaluator().evaluate("true", {}, 1.0, optional_old=False)


def test_a_process_that_somebody_else_ended_is_replaced() -> None:
    evaluator = RuleEvaluator()
    for _ in range(2):
        assert evaluator.evaluate("1 < 2", {}, 1.0, optional_old=False).value is True
        # Nothing gives the process away: nobody but a test needs it.
        assert evaluator._process._process is not None
        evaluator._process._process.kill()
        evaluator._process._process.wait()
    evaluator.close()


def test_the_order_of_a_set_does_not_make_it_another() -> None:
    names = {"type": "array", "items": TEXT, "x-kubernetes-list-type": "set"}
    schema = build_schema({"rule": "self.names == oldSelf.names", "message": "stays"}, names=names)
    assert not list_broken_rules(schema, {"names": ["b", "a"]}, {"names": ["a", "b"]})
    assert list_broken_rules(schema, {"names": ["b"]}, {"names": ["a", "b"]})


def test_the_order_of_a_list_with_keys_does_not_make_it_another() -> None:
    keyed = {
        "type": "array",
        "items": struct(n=TEXT, v=WHOLE),
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["n"],
    }
    schema = build_schema({"rule": "self.list == oldSelf.list", "message": "stays"}, list=keyed)
    one, other = {"n": "a", "v": 1}, {"n": "b", "v": 2}
    assert not list_broken_rules(schema, {"list": [other, one]}, {"list": [one, other]})
    assert list_broken_rules(schema, {"list": [other, {**one, "v": 3}]}, {"list": [one, other]})


def test_a_field_that_is_null_is_absent() -> None:
    schema = build_schema({"rule": "!has(self.a)"}, a=TEXT | {"nullable": True})
    assert not list_broken_rules(schema, {"a": None})
    assert list_broken_rules(schema, {"a": "x"})


def test_a_broken_rule_shows_scalars_only() -> None:
    rule = {"x-kubernetes-validations": [{"rule": "self > 1"}]}
    [message] = list_broken_rules(struct(a=WHOLE | rule), {"a": 1})
    assert message == "spec.a: Invalid value: 1: failed rule: self > 1"


def test_numbers_of_different_types_are_compared() -> None:
    schema = build_schema({"rule": "self.a < 1.5 && 15 > 10.0"}, a=WHOLE)
    assert not list_broken_rules(schema, {"a": 1})
    assert list_broken_rules(schema, {"a": 2})


def test_an_update_that_repeats_an_item_is_compared_as_it_is() -> None:
    items = struct(k=TEXT) | {"required": ["k"]}
    keyed = {
        "type": "array",
        "items": items,
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["k"],
    }
    schema = build_schema({"rule": "size(oldSelf.l) == 1"}, l=keyed)
    assert list_broken_rules(schema, {"l": [{"k": "a"}, {"k": "a"}]}, {"l": [{"k": "a"}]}) == []
