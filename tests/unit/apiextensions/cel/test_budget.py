"""The estimated cost of rules."""

from __future__ import annotations

import pytest

from kcm.apiextensions.cel import budget


@pytest.mark.parametrize(
    "text",
    ["self.a <= self.b", "self.a + self.b < 3 || has(self.c)", "self.all(x, x != oldSelf)"],
)
def test_rules_over_little_are_small(text: str) -> None:
    assert budget.estimate(text, *budget.size({"self": {"a": 1, "b": [2]}})) <= budget.SMALL


@pytest.mark.parametrize(
    "text",
    [
        "self.s.replace('a', self.s) == ''",
        "self.l.join(',') == ''",
        "self.l.all(x, self.l.all(y, self.l.all(z, x + y + z > 0)))",
        "[self.s + self.s].all(a, [a + a].all(b, [b + b].all(c, [c + c].all(d, d != ''))))",
        "self.s.split('').all(x, x in self.l)",
        "self.s.indexOf(self.s) == 0 " + "|| self.s.indexOf(self.s) == 0 " * 100,
        ".map(x, x + x)" * 7_000,
    ],
)
def test_what_multiplies_or_repeats_is_not(text: str) -> None:
    assert budget.estimate(text, *budget.size({"s": "a" * 1_000, "l": [1] * 100})) > budget.SMALL


def test_large_values_are_not_small_whatever_the_rule() -> None:
    assert budget.estimate("self == ''", *budget.size("a" * 1_000_000)) > budget.SMALL


def test_size_counts_texts_names_and_values() -> None:
    assert budget.size({"name": ["ab", 1]}) == (4 + 2 + 8 * 4, 4)


@pytest.mark.parametrize(
    "call",
    [
        "object.l.transformMap(k, v, v)",
        "object.l.transformMapEntry(k, v, {v: k})",
        "sets.contains(object.l, object.l)",
        "sets.equivalent(object.l, object.l)",
        "sets.intersects(object.l, object.l)",
    ],
)
def test_what_compares_each_with_each_counts_as_a_square(call: str) -> None:
    assert budget.estimate_calls(call, 20_000, 2_000) > budget.SMALL
