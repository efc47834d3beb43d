"""A controller's own counters and histograms, added up over all processes.

A controller declares them in `metrics`; its plans say what to add (`Plan.counts`, and
`Plan.counted` for what depends on the writes); every manager shows the sums on `/metrics`.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

Counts = Mapping[str, int]  # by a counter's name and the values of its labels

SUM = "sum"  # the part of a histogram that is no bucket; in millionths
_MILLION = 1_000_000


@dataclass(frozen=True)
class Counter:
    """`name` without `_total`, `text` for people, `labels` in order."""

    name: str
    text: str
    labels: tuple[str, ...] = ()

    def count(self, *values: str, by: int = 1) -> dict[str, int]:
        """What adds `by` under these values of the labels."""
        return {_key(self.name, self.labels, values): by}


@dataclass(frozen=True)
class Histogram:
    """As a counter; `buckets` are upper bounds, rising."""

    name: str
    text: str
    buckets: tuple[float, ...]
    labels: tuple[str, ...] = ()

    def observe(self, value: float, *values: str) -> dict[str, int]:
        """What adds one observation, at least 0, under these values of the labels."""
        key, value = _key(self.name, self.labels, values), max(value, 0.0)
        bucket = bisect_left(self.buckets, value)
        return {f"{key}|{bucket}": 1, f"{key}|{SUM}": round(value * _MILLION)}


def exponential(start: float, factor: float, count: int) -> tuple[float, ...]:
    """So many upper bounds, each `factor` times the one before."""
    return tuple(start * factor**power for power in range(count))


def together(found: Iterable[Counts]) -> dict[str, int]:
    """The sums of what is to be added."""
    sums: dict[str, int] = {}
    for counts in found:
        for name, amount in counts.items():
            sums[name] = sums.get(name, 0) + amount
    return sums


def _key(name: str, labels: tuple[str, ...], values: tuple[str, ...]) -> str:
    if len(values) != len(labels):
        raise TypeError(f"{name} has the labels {labels}, not {len(values)}")
    return "|".join((name, *(value.replace("|", "/") for value in values)))
