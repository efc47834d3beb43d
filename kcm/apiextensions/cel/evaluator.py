"""Evaluates costly rules in a child process, which can be killed.

The library has no limits on cost and cannot be interrupted. The child process has limits on its
memory and on the CPU seconds of each rule. It ends when it exceeds one, and the next rule starts
another. So every evaluation ends, and a costly rule affects its own object only. Each process of
kcm has one such child process, which evaluates one rule at a time.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from kcm.apiextensions.cel import budget
from kcm.apiextensions.cel.expressions import (
    EXHAUSTED,
    ExpressionResult,
    evaluate,
    evaluate_program,
)
from kcm.apiextensions.cel.policy_programs import Scope, compile_expression
from kcm.apimachinery.child_process import (
    ChildEndedError,
    ChildProcess,
    answer_requests,
    limit_memory,
)

_MAX_MEMORY = 256 * 1024**2  # bytes of address space beyond those at the start
_MAX_RESULT = 10 * 1024  # characters; messages are shorter, and rules are true or false
_MAX_VALUE = 100 * 1024  # bytes of the value of a policy's variable
_Request = tuple[str, Mapping[str, Any], bool, float, Scope | None]


class RuleEvaluator:
    """Evaluates CEL rules in a child process, which the first evaluation starts. Thread-safe."""

    def __init__(self) -> None:
        self._process = ChildProcess("kcm.apiextensions.cel.evaluator")

    def evaluate(
        self,
        text: str,
        variables: Mapping[str, Any],
        seconds: float,
        *,
        optional_old: bool = False,
        scope: Scope | None = None,
    ) -> ExpressionResult:
        """Evaluates as `expressions.evaluate` does, with at most `seconds` of CPU time.

        With a `scope`, the text is an expression of a policy. Returns EXHAUSTED if the time was
        not enough. Raises RuntimeError if the child process cannot be started.
        """
        request: _Request = (text, variables, optional_old, seconds, scope)
        try:
            outcome: ExpressionResult = self._process.ask(request)
        except ChildEndedError:
            return EXHAUSTED
        return outcome

    def close(self) -> None:
        """Kills the child process. The next evaluation starts another."""
        self._process.close()


# --- in the process


def main() -> None:
    """Runs the child process: evaluates one request after the other until its input ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent process stops this one
    answer_requests(_prepare)


def _prepare(_: Any) -> Callable[[_Request], ExpressionResult]:
    evaluate("true", {})  # loads the library
    limit_memory(_MAX_MEMORY)
    # hides what the library prints when the process is killed
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    ended = time.process_time()

    def answer(request: _Request) -> ExpressionResult:
        """Answers a request; its time begins when the one before had ended, so that reading it
        counts.
        """
        nonlocal ended
        outcome = _answer(*request)
        began, ended = ended, time.process_time()
        return replace(outcome, spent=ended - began)

    return answer


def _answer(
    text: str,
    variables: Mapping[str, Any],
    optional_old: bool,
    seconds: float,
    scope: Scope | None,
) -> ExpressionResult:
    signal.setitimer(signal.ITIMER_PROF, max(seconds, 0.001))  # SIGPROF kills the process
    if scope is None:
        outcome = evaluate(text, variables, optional_old=optional_old)
    else:
        outcome = evaluate_program(compile_expression(text, scope).program, data=dict(variables))
    signal.setitimer(signal.ITIMER_PROF, 0)
    if outcome.exhausted:  # out of memory; a new process starts with all of it
        sys.exit()
    value = outcome.value
    if isinstance(value, bool) or (isinstance(value, str) and len(value) <= _MAX_RESULT):
        return outcome
    if scope is not None and not outcome.error:
        if budget.size(value)[0] > _MAX_VALUE:
            return EXHAUSTED
        return outcome
    return ExpressionResult(error=outcome.error, unchecked=outcome.unchecked, spent=outcome.spent)


if __name__ == "__main__":
    main()
