"""The rows of results, and the table of them."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tabulate import tabulate


@dataclass(frozen=True)
class Sample:
    """Repeated measurements of one quantity, in one unit."""

    values: tuple[float, ...]

    @classmethod
    def of(cls, values: Sequence[float]) -> Sample:
        if not values:
            raise ValueError("nothing was measured")
        return cls(tuple(values))

    @property
    def median(self) -> float:
        return statistics.median(self.values)

    def percentile(self, share: float) -> float:
        """Returns the value below which a share (0 to 1) of all values lies."""
        ordered = sorted(self.values)
        return ordered[min(len(ordered) - 1, int(share * len(ordered)))]

    @property
    def noisy(self) -> bool:
        """Whether the third quartile is more than one and a half times the first."""
        low, high = self.percentile(0.25), self.percentile(0.75)
        return len(self.values) > 1 and high > 1.5 * low

    def __str__(self) -> str:
        if len(self.values) == 1:
            return number(self.median)
        low, high = min(self.values), max(self.values)
        return f"{number(self.median)} ({number(low)} .. {number(high)})"


@dataclass(frozen=True)
class Row:
    """One result: what was measured, its baseline, and the bound that it has to keep.

    `bound` is in the unit of `measured`; a bound that is a ratio was computed from the baseline of
    the same run. `target` is the rule as text.
    """

    name: str
    what: str
    unit: str
    measured: Sample
    baseline: Sample
    baseline_what: str
    bound: float
    target: str
    higher_is_better: bool = False
    value: float | None = None  # what has to keep the bound, if not the median
    note: str = ""

    @property
    def judged(self) -> float:
        return self.measured.median if self.value is None else self.value

    @property
    def ratio(self) -> float:
        return self.judged / self.baseline.median if self.baseline.median else float("nan")

    @property
    def passed(self) -> bool:
        good = self.judged >= self.bound if self.higher_is_better else self.judged <= self.bound
        return bool(good)

    @property
    def verdict(self) -> str:
        """`pass` or `MISS`, with `noisy` if the values of the baseline vary much."""
        word = "pass" if self.passed else "MISS"
        return f"{word}, noisy" if self.baseline.noisy else word

    def as_dict(self) -> dict[str, Any]:
        """Returns all fields and results, for `--json`."""
        return {
            "name": self.name,
            "what": self.what,
            "unit": self.unit,
            "measured": self.judged,
            "min": min(self.measured.values),
            "max": max(self.measured.values),
            "baseline": self.baseline.median,
            "baseline_min": min(self.baseline.values),
            "baseline_max": max(self.baseline.values),
            "baseline_what": self.baseline_what,
            "ratio": self.ratio,
            "higher_is_better": self.higher_is_better,
            "bound": self.bound,
            "target": self.target,
            "passed": self.passed,
            "noisy": self.baseline.noisy,
            "note": self.note,
        }

    def cells(self) -> list[str]:
        sign = ">=" if self.higher_is_better else "<="
        judged = "" if self.value is None else f"{number(self.value)}, all: "
        return [
            self.name,
            self.what,
            f"{judged}{self.measured} {self.unit}",
            f"{self.baseline} ({self.baseline_what})",
            f"{self.ratio:.2f}",
            f"{self.target} ({sign} {number(self.bound)} {self.unit})",
            self.verdict,
        ]


HEADERS = ("row", "what", "measured: median (min .. max)", "raw", "ratio", "target", "")


def render(rows: Sequence[Row]) -> str:
    """Returns the table as text, with the rows' notes below it."""
    widths = [22, 30, 30, 30, None, 26, None]
    table = tabulate(
        [row.cells() for row in rows],
        HEADERS,
        tablefmt="simple",
        maxcolwidths=widths,
        disable_numparse=True,
    )
    notes = [f"  {row.name}: {row.note}" for row in rows if row.note]
    return "\n".join([table, *(["", "notes:", *notes] if notes else [])])


def number(value: float) -> str:
    """Formats a number with three significant digits, without an exponent."""
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.3g}"
