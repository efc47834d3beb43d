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


def estimate(text: str, length: int, count: int) -> float:
    """Returns the most steps that a rule takes over variables of `length` bytes in `count` values.

    Each operation may take the square of the size of its operands, as a search in a string does.
    """
    if _MULTIPLYING.search(text):
        return float("inf")
    macros = len(_MACRO.findall(text))
    if _SPLITTING.search(text):
        count = length
    growth = 1 + text.count("+")
    if _LIST.search(text):
        growth += text.count(",") + 1
    length += len(text)
    iterations = min(_MOST_ITERATIONS, (count * growth) ** min(macros, _MANY)) if macros else 1
    largest = float(length * growth ** min(macros + 1, _MANY))
    return len(text) / _PER_STEP * iterations * (largest * largest)


_MANY = 30  # the most macros that are counted; more make no difference
