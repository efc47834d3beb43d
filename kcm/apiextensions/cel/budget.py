"""The cost of evaluating a rule, estimated from its text and its variables.

Guarantees an upper bound, far too high for most rules. What is below `SMALL` can neither hold the
interpreter for more than some tenths of a second nor grow beyond some hundred megabytes. Does not
guarantee that what is above it costs much.

The library bounds how often macros iterate in one evaluation, and nothing else: each step may
double a text, or walk all of a list.
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
_PER_STEP = 4  # characters of a rule for each operation, at least


def size(value: Any) -> tuple[int, int]:
    """Returns the approximate bytes and values of a variable."""
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
    """Returns the most steps that a rule takes over so many bytes in so many values.

    Each operation may take the square of what it works on, as a search in a text does.
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


_MANY = 30  # macros from which on another one makes no difference
