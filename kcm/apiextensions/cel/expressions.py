"""CEL expressions, compiled once and evaluated by cel-expr-python.

The first rule loads the library, so that processes without rules do not pay for it.
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

UNSUPPORTED = (
    "url", "isURL", "ip", "isIP", "cidr", "isCIDR", "quantity", "isQuantity", "format", "semver",
    "isSemver", "authorizer",
)  # fmt: skip
"""Functions of Kubernetes' CEL libraries that kcm has not."""

_UNDECLARED = re.compile(rf"undeclared reference to '({'|'.join(UNSUPPORTED)})'")
_LOCK = threading.Lock()


@dataclass(frozen=True)
class ExpressionResult:
    """The result of an expression."""

    value: Any = None
    error: str = ""
    unchecked: bool = False  # it cannot be evaluated here
    spent: float = 0.0  # seconds of CPU that it took
    exhausted: bool = False  # it was cut, since it took more than it may


EXHAUSTED = ExpressionResult(exhausted=True)


@dataclass(frozen=True)
class CompiledExpression:
    """An expression, or why there is none."""

    program: Any = None
    error: str = ""
    unsupported: str = ""  # the function that is missing here


def available() -> bool:
    """Reports whether the library can be loaded."""
    return _environment() is not None


# An optional variable cannot be handed in: it is bound from a list of none or one.
_BIND = "cel.bind(oldSelf, size(oldSelfs) == 0 ? optional.none() : optional.of(oldSelfs[0]), "


@lru_cache(maxsize=2048)
def compile_expression(text: str, optional_old: bool = False) -> CompiledExpression:
    """Returns the compiled expression. With `optional_old`, oldSelf is an optional."""
    environment = _environment()
    if environment is None:
        return CompiledExpression(unsupported="the library for CEL")
    try:
        with _LOCK:  # the environment promises nothing about threads
            return CompiledExpression(
                environment.compile(f"{_BIND}{text})" if optional_old else text)
            )
    except RuntimeError as error:
        if undeclared := _UNDECLARED.search(str(error)):
            return CompiledExpression(unsupported=f"function {undeclared[1]}")
        return CompiledExpression(error=_first(str(error)))


def evaluate(
    text: str, variables: Mapping[str, Any], *, optional_old: bool = False
) -> ExpressionResult:
    """Returns the result of an expression with these variables."""
    compiled_text = compile_expression(text, optional_old)
    if compiled_text.program is None:
        if compiled_text.unsupported:
            return ExpressionResult(unchecked=True)
        return ExpressionResult(error=f"rule compile error: {compiled_text.error}")
    before = time.thread_time()
    try:
        result = compiled_text.program.eval(data=dict(variables))
        value = result.plain_value()
    except MemoryError:
        return EXHAUSTED
    except (RuntimeError, ValueError, TypeError) as error:
        return ExpressionResult(
            error=f"rule evaluation error: {_first(str(error))}", spent=time.thread_time() - before
        )
    spent = time.thread_time() - before
    if result.type().name() == "ERROR":
        return ExpressionResult(error=f"rule evaluation error: {_first(str(value))}", spent=spent)
    return ExpressionResult(value, spent=spent)


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
