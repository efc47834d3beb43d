"""Evaluates costly expressions in two child processes: one for quick ones, one for slow ones.

An expression that has taken long takes long again, and those that wait for the same process would
wait for it. So it has to wait among its like from then on. How long an expression takes depends on
its variables, so it is known for their order of magnitude.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from kcm.apiextensions.cel.evaluator import RuleEvaluator
from kcm.apiextensions.cel.expressions import ExpressionResult
from kcm.apiextensions.cel.policy_programs import Scope

LONG = 0.02  # seconds of CPU from which on an expression is slow
_TRIAL = 0.1  # seconds of CPU that an expression may take among the quick ones
_MOST_TEXTS = 4096


class Lanes:
    """Two child processes, and which expressions are slow. Thread-safe."""

    def __init__(self) -> None:
        self._quick = RuleEvaluator()
        self._slow = RuleEvaluator()
        self._lock = threading.Lock()
        self._slow_texts: OrderedDict[tuple[str, int], None] = OrderedDict()  # the slow ones

    def is_slow(self, text: str, length: int) -> bool:
        """Reports whether the expression was slow on variables of about `length` bytes."""
        return bool(self._slow_texts) and (text, length.bit_length()) in self._slow_texts

    def note(self, text: str, length: int, result: ExpressionResult) -> None:
        """Learns from a result whether the expression is slow."""
        if result.spent < LONG and not result.exhausted:
            return
        key = (text, length.bit_length())
        with self._lock:
            self._slow_texts[key] = None
            self._slow_texts.move_to_end(key)
            if len(self._slow_texts) > _MOST_TEXTS:
                self._slow_texts.popitem(last=False)

    def evaluate(
        self,
        text: str,
        variables: Mapping[str, Any],
        length: int,
        seconds: float,
        *,
        optional_old: bool = False,
        scope: Scope | None = None,
    ) -> ExpressionResult:
        """Evaluates as `RuleEvaluator.evaluate` does. `length` is the size of the variables.

        An expression that turns out to be slow is evaluated again among the slow ones.
        """
        if not self.is_slow(text, length):
            trial = min(seconds, _TRIAL)
            result = self._quick.evaluate(
                text, variables, trial, optional_old=optional_old, scope=scope
            )
            self.note(text, length, result)
            seconds -= trial
            if not result.exhausted or seconds <= 0:
                return result
        else:
            trial = 0.0
        result = self._slow.evaluate(
            text, variables, seconds, optional_old=optional_old, scope=scope
        )
        return replace(result, spent=result.spent + trial)

    def close(self) -> None:
        """Kills the child processes. The next evaluation starts another."""
        self._quick.close()
        self._slow.close()
