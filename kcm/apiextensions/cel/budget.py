"""Estimates the cost of evaluating a rule from its text and its variables.

The estimate is an upper bound, far too high for most rules. A rule whose estimate is below `SMALL`
neither runs for more than some tenths of a second nor needs more than some hundred megabytes. A
rule above it may be cheap as well.

The library limits only how often macros iterate in one evaluation. Each step may double a string,
or walk through all of a list.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

SMALL = 100_000_000
_MOST_ITERATIONS = 10_000  # iterations of all macros of one evaluation, in the library
_MACRO = re.compile(
    r"\.\s*(all|exists|exists_one|existsOne|map|filter|optMap|optFlatMap|transform\w+)\s*\("
    r"|\bbind\s*\("
)
_LIST = re.compile(r"(?:^|[^\w\])\s.])\s*\[")  # a literal, not an index
# Operations whose result is longer than their parts together.
_MULTIPLYING = re.compile(r"\b(replace|join|format|findAll)\s*\(")
_SEARCHING = re.compile(
    r"\b(contains|equivalent|intersects|indexOf|lastIndexOf|matches|find|split"
    r"|transformMap|transformMapEntry)\s*\("
)
_SPLITTING = re.compile(r"\bsplit\s*\(")
_PER_STEP = 4  # the fewest characters of a rule for each operation


def size(value: Any) -> tuple[int, int]:
    """Returns the approximate size of a variable in bytes, and the number of values in it."""
    total = count = 0
    waiting = [value]
    while waiting:
        item = waiting.pop()
        count += 1
        if isinstance(item, str | bytes):
            total += len(item)
        elif isinstance(item, Mapping):
            total += sum(map(len, item))
            waiting.extend(item.values())
        elif isinstance(item, list):
            waiting.extend(item)
    return total + 8 * count, count


@dataclass(frozen=True)
class _Shape:
    """What the cost of a rule depends on in its text."""

    multiplies: bool  # whether a result may be longer than its operands together
    splits: bool
    macros: int
    growth: int  # how many times as long as its operands a result may be
    searches: int  # calls that may take the square of the size of a text, list or map


@lru_cache(maxsize=4096)
def _shape(text: str) -> _Shape:
    growth = 1 + text.count("+")
    if _LIST.search(text):
        growth += text.count(",") + 1
    return _Shape(
        multiplies=_MULTIPLYING.search(text) is not None,
        splits=_SPLITTING.search(text) is not None,
        macros=len(_MACRO.findall(text)),
        growth=growth,
        searches=len(_SEARCHING.findall(text)),
    )


def is_linear(text: str) -> bool:
    """Reports whether a rule takes no more time than its text is long and its operands are large:
    it has no macro, and no call that searches or multiplies.
    """
    shape = _shape(text)
    return not (shape.macros or shape.multiplies or shape.searches)


def estimate(text: str, length: int, count: int) -> float:
    """Returns the most steps that a rule takes over variables of `length` bytes in `count` values.

    Each operation may take the square of the size of its operands, as a search in a string does.
    """
    shape = _shape(text)
    if shape.multiplies:
        return float("inf")
    iterations, largest = _bounds(text, shape, length, count)
    return len(text) / _PER_STEP * iterations * (largest * largest)


def estimate_calls(text: str, length: int, count: int) -> float:
    """Returns the most steps as `estimate` does, where only calls that search in a text count as
    the square of its size, and every other operation as its size.

    It is lower for the large objects that policies get.
    """
    shape = _shape(text)
    if shape.multiplies:
        return float("inf")
    iterations, largest = _bounds(text, shape, length, count)
    steps = len(text) / _PER_STEP
    return iterations * (steps * largest + shape.searches * largest * largest)


def _bounds(text: str, shape: _Shape, length: int, count: int) -> tuple[int, float]:
    """Returns the most iterations of macros in a rule, and the largest size of a value in it."""
    macros = min(shape.macros, _MANY)
    if shape.splits:
        count = length
    length += len(text)
    iterations = 1
    if macros:
        iterations = min(_MOST_ITERATIONS, (count * shape.growth) ** macros)
    return iterations, float(length * shape.growth ** min(shape.macros + 1, _MANY))


_MANY = 30  # the most macros that are counted; more make no difference
