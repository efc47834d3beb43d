"""A controller's own counters and histograms, summed over all processes.

A controller declares them in `metrics`. Its plans have the amounts to add (`Plan.counts`, and
`Plan.counts_after` for those that depend on the writes). Every manager exposes the sums on
`/metrics`.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

Counts = Mapping[str, int]  # by `name|label value|...`, the amount to add to a counter

SUM = "sum"  # the last part of the key for the sum of a histogram's observations, in millionths
_MILLION = 1_000_000


@dataclass(frozen=True)
class Counter:
    """A counter: its `name` without `_total`, its help `text`, and its `labels` in order."""

    name: str
    text: str
    labels: tuple[str, ...] = ()

    def count(self, *values: str, by: int = 1) -> dict[str, int]:
        """Returns the counts that add `by` under these label values."""
        return {_key(self.name, self.labels, values): by}


@dataclass(frozen=True)
class Histogram:
    """A histogram: like a counter, with rising upper bounds as `buckets`."""

    name: str
    text: str
    buckets: tuple[float, ...]
    labels: tuple[str, ...] = ()

    def observe(self, value: float, *values: str) -> dict[str, int]:
        """Returns the counts that add one observation under these label values.

        A negative value counts as 0.
        """
        key, value = _key(self.name, self.labels, values), max(value, 0.0)
        bucket = bisect_left(self.buckets, value)
        return {f"{key}|{bucket}": 1, f"{key}|{SUM}": round(value * _MILLION)}


def exponential_buckets(start: float, factor: float, count: int) -> tuple[float, ...]:
    """Returns `count` upper bounds, each `factor` times the one before."""
    return tuple(start * factor**power for power in range(count))


def sum_counts(several: Iterable[Counts]) -> dict[str, int]:
    """Returns the sum of several counts."""
    sums: dict[str, int] = {}
    for counts in several:
        for name, amount in counts.items():
            sums[name] = sums.get(name, 0) + amount
    return sums


def _key(name: str, labels: tuple[str, ...], values: tuple[str, ...]) -> str:
    if len(values) != len(labels):
        raise TypeError(f"{name} has the labels {labels}, not {len(values)}")
    return "|".join((name, *(value.replace("|", "/") for value in values)))
