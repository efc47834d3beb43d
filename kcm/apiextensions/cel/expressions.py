"""CEL expressions, which cel-expr-python compiles once and evaluates.

The first expression loads the library, so processes without rules do not pay for it.
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

_LOCK = threading.Lock()


@dataclass(frozen=True, slots=True)
class ExpressionResult:
    """The value of an expression, or why there is none."""

    value: Any = None
    error: str = ""
    unchecked: bool = False  # the library is not there
    spent: float = 0.0  # seconds of CPU that it took
    exhausted: bool = False  # it was stopped, because it exceeded its limits


EXHAUSTED = ExpressionResult(exhausted=True)
COMPILE_ERROR = "rule compile error: "
NO_OVERLOAD = "no such overload"
TOO_COSTLY = "operation cancelled: actual cost limit exceeded"
_IN_GO = (  # errors of the library, and cel-go's
    (r'^Key not found in map : "?(.*?)"?$', r"no such key: \1"),
    (r"^Index error: index=(-?\d+) size=\d+$", r"index out of bounds: \1"),
    (r"^divide by zero$", "division by zero"),
    (r"^No matching overloads found : .*$", NO_OVERLOAD),
    (r"^Iteration budget exceeded$", TOO_COSTLY),
)


@dataclass(frozen=True)
class CompiledExpression:
    """A compiled expression, or why it could not be compiled."""

    program: Any = None
    error: str = ""
    unsupported: str = ""  # what it needs and is not there


def available() -> bool:
    """Reports whether the library can be loaded."""
    return _environment() is not None


# Variables cannot be optionals, so oldSelf is bound from a list of no or one item.
_BIND = "cel.bind(oldSelf, size(oldSelfs) == 0 ? optional.none() : optional.of(oldSelfs[0]), "


def bind_old(text: str) -> str:
    """Returns an expression in which oldSelf is an optional, for rules with optionalOldSelf."""
    return f"{_BIND}{text})"


@lru_cache(maxsize=2048)
def compile_expression(text: str, optional_old: bool = False) -> CompiledExpression:
    """Returns the compiled expression.

    `optional_old` says that oldSelf is an optional, as in rules with optionalOldSelf.
    """
    environment = _environment()
    if environment is None:
        return CompiledExpression(unsupported="the library for CEL")
    try:
        with _LOCK:  # the environment may not be thread-safe
            return CompiledExpression(environment.compile(bind_old(text) if optional_old else text))
    except RuntimeError as error:
        return CompiledExpression(error=_first(str(error)))


def evaluate(
    text: str, variables: Mapping[str, Any], *, optional_old: bool = False
) -> ExpressionResult:
    """Returns the result of an expression with these variables."""
    compiled_text = compile_expression(text, optional_old)
    if compiled_text.program is None:
        if compiled_text.unsupported:
            return ExpressionResult(unchecked=True)
        return ExpressionResult(error=f"{COMPILE_ERROR}{compiled_text.error}")
    return evaluate_program(compiled_text.program, data=dict(variables))


def evaluate_program(program: Any, **given: Any) -> ExpressionResult:
    """Returns the result of a compiled expression. `given` are its `data` or its `activation`."""
    before = time.thread_time()
    try:
        result = program.eval(**given)
        value = result.plain_value()
    except MemoryError:
        return EXHAUSTED
    except (RuntimeError, ValueError, TypeError) as error:
        return ExpressionResult(error=_tell(str(error)), spent=time.thread_time() - before)
    spent = time.thread_time() - before
    if value is not True and value is not False and result.type().name() == "ERROR":
        return ExpressionResult(error=_tell(str(value)), spent=spent)
    return ExpressionResult(value, spent=spent)


def _tell(text: str) -> str:
    """Returns a runtime error of the library in the words of cel-go, where they are known."""
    line = re.sub(r" \[[A-Z_]+\]$", "", _first(text))
    for pattern, words in _IN_GO:
        line = re.sub(pattern, words, line)
    return line


def _first(text: str) -> str:
    line = text.strip().splitlines()[0] if text.strip() else "unknown"
    return re.sub(r"^[A-Z_]+: ", "", line)


@lru_cache(maxsize=1)
def _environment() -> Any:
    try:
        from kcm.apiextensions.cel import cel_environment  # noqa: PLC0415 - loads 16 MB
    except ImportError:
        return None
    return cel_environment.make()
