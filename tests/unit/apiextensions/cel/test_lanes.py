"""Slow expressions wait for each other, and quick ones do not wait for them."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import replace

import pytest

from kcm.apiextensions.cel import lanes
from kcm.apiextensions.cel.expressions import EXHAUSTED, ExpressionResult
from kcm.apiextensions.cel.lanes import Lanes
from kcm.apiextensions.cel.policy_programs import Scope

QUICK = "object.replace('a', 'b') == 'b'"
SLOW = "object.all(a, object.all(b, object.all(c, a.replace('', b.replace('', a)) != c)))"
MANY = {"object": {f"{'k' * 200}{number}": "x" for number in range(60)}}


@pytest.fixture
def two() -> Iterator[Lanes]:
    made = Lanes()
    yield made
    made.close()


def test_a_slow_expression_holds_up_no_quick_one(two: Lanes) -> None:
    tried = two.evaluate(SLOW, MANY, 15_000, 0.15, scope=Scope())
    assert tried == replace(EXHAUSTED, spent=lanes._TRIAL)  # among the quick ones, and then slow
    assert two.is_slow(SLOW, 15_000)
    assert two.evaluate(QUICK, {"object": "a"}, 10, 1.0, scope=Scope()).value is True
    results: list[ExpressionResult] = []

    def run_slow() -> None:
        results.append(two.evaluate(SLOW, MANY, 15_000, 0.5, scope=Scope()))

    threads = [threading.Thread(target=run_slow) for _ in range(2)]
    for thread in threads:
        thread.start()
    quick = [two.evaluate(QUICK, {"object": "a"}, 10, 1.0, scope=Scope()) for _ in range(20)]
    assert all(result.value is True for result in quick)
    assert (
        not results
    )  # the first of them takes half a second of CPU, the quick ones some milliseconds
    for thread in threads:
        thread.join()
    assert results == [EXHAUSTED] * 2


def test_a_slow_expression_may_use_its_whole_budget(
    monkeypatch: pytest.MonkeyPatch, two: Lanes
) -> None:
    monkeypatch.setattr(lanes, "_TRIAL", 0.001)
    text = " && ".join(["object == object"] * 15)
    many = {"object": {f"k{number}": "v" * 20 for number in range(20_000)}}
    assert two.evaluate(text, many, 1_000_000, 30.0, scope=Scope()).value is True
    assert two.is_slow(text, 1_000_000)


def test_few_slow_expressions_are_remembered(monkeypatch: pytest.MonkeyPatch, two: Lanes) -> None:
    monkeypatch.setattr(lanes, "_MOST_TEXTS", 2)
    for text in ("a", "b", "a", "c"):
        two.note(text, 1, EXHAUSTED)
    two.note("quick", 1, ExpressionResult(value=True, spent=lanes.LONG / 2))
    assert [two.is_slow(text, 1) for text in ("a", "b", "c", "quick")] == [True, False, True, False]
