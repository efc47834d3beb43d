"""Sets of completion indexes in the compact form of a Job's status: `1,3-5,7`.

Source: pkg/controller/job/indexed_job_utils.go and pkg/apis/batch/validation/validation.go
(parseIndexInterval, validateIndexesFormat), Kubernetes 1.33.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

Interval = tuple[int, int]  # first and last

_INTEGER = re.compile(r"[+-]?\d+", re.ASCII)


@dataclass(frozen=True)
class Indexes:
    """A set of indexes, as sorted intervals that neither touch nor overlap."""

    intervals: tuple[Interval, ...] = ()

    @classmethod
    def of(cls, intervals: Iterable[Interval]) -> Indexes:
        """Returns the set of all indexes in these intervals."""
        merged: list[Interval] = []
        for first, last in sorted(intervals):
            if merged and first <= merged[-1][1] + 1:
                merged[-1] = (merged[-1][0], max(merged[-1][1], last))
            else:
                merged.append((first, last))
        return cls(tuple(merged))

    @classmethod
    def parse(cls, text: str | None, completions: int) -> Indexes:
        """Returns the set in the text of a Job's status.

        Parts that cannot be parsed, and indexes from `completions` on, are left out.
        """
        intervals = []
        for part in (text or "").split(","):
            first, _, last = part.partition("-")
            if first.isdecimal() and (last or first).isdecimal() and int(first) < completions:
                intervals.append((int(first), min(int(last or first), completions - 1)))
        return cls.of(intervals)

    def __len__(self) -> int:
        return sum(last - first + 1 for first, last in self.intervals)

    def __contains__(self, index: int) -> bool:
        at = bisect_left(self._lasts, index)
        return at < len(self.intervals) and self.intervals[at][0] <= index

    def __or__(self, other: Indexes) -> Indexes:
        return Indexes.of((*self.intervals, *other.intervals)) if other.intervals else self

    def __str__(self) -> str:
        return ",".join(_text(*interval) for interval in self.intervals)

    @cached_property
    def _lasts(self) -> list[int]:
        return [last for _, last in self.intervals]

    def with_indexes(self, indexes: Iterable[int]) -> Indexes:
        """Returns the set with these indexes added."""
        return self | Indexes.of((index, index) for index in indexes)

    def common(self, other: Indexes) -> int:
        """Returns the number of indexes that are in both sets."""
        return sum(last - first + 1 for first, last in self.intersect(other))

    def intersect(self, other: Indexes) -> Iterator[Interval]:
        """Yields the intervals of the indexes that are in both sets, sorted."""
        mine, theirs = self.intervals, other.intervals
        at = by = 0
        while at < len(mine) and by < len(theirs):
            first = max(mine[at][0], theirs[by][0])
            last = min(mine[at][1], theirs[by][1])
            if first <= last:
                yield first, last
            if mine[at][1] < theirs[by][1]:
                at += 1
            else:
                by += 1

    def missing(self, completions: int) -> Iterator[int]:
        """Yields the indexes below `completions` that are not in the set, sorted."""
        candidate = 0
        for first, last in self.intervals:
            yield from range(candidate, min(first, completions))
            candidate = last + 1
        yield from range(candidate, completions)


def _text(first: int, last: int) -> str:
    if first == last:
        return str(first)
    return f"{first}{',' if last == first + 1 else '-'}{last}"


def parse_strictly(text: str, completions: int) -> Indexes:
    """Returns the set that a text describes. Raises ValueError, with upstream's message."""
    intervals: list[Interval] = []
    for part in text.split(",") if text else ():
        interval = _interval(part, completions)
        if intervals and intervals[-1][1] >= interval[0]:
            raise ValueError(_order(intervals[-1][1], interval[0]))
        intervals.append(interval)
    return Indexes.of(intervals)


def overlap(text: str, other: str, completions: int) -> int | None:
    """Returns the first index that is in both texts, or None.

    Parts that cannot be parsed are left out.
    """
    mine, theirs = _parse_readable(text, completions), _parse_readable(other, completions)
    return next((first for first, _ in mine.intersect(theirs)), None)


def _parse_readable(text: str, completions: int) -> Indexes:
    intervals = []
    for part in text.split(",") if text else ():
        try:
            intervals.append(_interval(part, completions))
        except ValueError:
            continue
    return Indexes.of(intervals)


def _interval(text: str, completions: int) -> Interval:
    limits = text.split("-")
    if len(limits) > 2:
        raise ValueError(
            f'the fragment "{text}" violates the requirement that an index interval can have '
            "at most two parts separated by '-'"
        )
    first, last = _index(limits[0], completions), _index(limits[-1], completions)
    if len(limits) == 2 and first >= last:
        raise ValueError(_order(first, last))
    return first, last


def _index(text: str, completions: int) -> int:
    if not _INTEGER.fullmatch(text):
        raise ValueError(f'cannot convert string to integer for index: "{text}"')
    if int(text) >= completions:
        raise ValueError(f'too large index: "{text}"')
    return int(text)


def _order(previous: int, current: int) -> str:
    return f"non-increasing order, previous: {previous}, current: {current}"
