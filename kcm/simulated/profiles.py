"""Amounts over time: `100m`, `100m for 1m, 900m`, `shared 2 for 5m, 200m for 5m`."""

from __future__ import annotations

from dataclasses import dataclass

from kcm.apimachinery.durations import FOREVER, parse_seconds
from kcm.apimachinery.quantity import Quantity, parse

_SHARED = "shared "


@dataclass(frozen=True, slots=True)
class Profile:
    """Amounts, each with its seconds; if the last one ends, the first follows."""

    steps: tuple[tuple[Quantity, float], ...]
    shared: bool = False  # whether it is what all pods of one controller have together

    def at(self, since: float, sharers: int = 1) -> Quantity:
        """Returns the amount `since` seconds after the beginning, for one of `sharers` that share
        it.
        """
        length = sum(duration for _, duration in self.steps)
        left = since % length if length < FOREVER else since
        amount = self.steps[-1][0]
        for step, duration in self.steps:
            if left < duration:
                amount = step
                break
            left -= duration
        if not self.shared:
            return amount
        return Quantity.of_nanos(amount.nanos // max(1, sharers), amount.format)

    def sum(self, since: float) -> float:
        """Returns the sum over the first `since` seconds, in billionths of the unit times
        seconds.
        """
        length = sum(duration for _, duration in self.steps)
        rounds, left = divmod(since, length) if length < FOREVER else (0.0, since)
        total = 0.0
        for amount, duration in self.steps:
            if rounds:
                total += rounds * duration * amount.nanos
            total += min(max(left, 0.0), duration) * amount.nanos
            left -= duration
        return total


def profile(text: str) -> Profile:
    """Parses a profile. Raises ValueError, which tells the correct form."""
    shared = text.strip().startswith(_SHARED)
    parts = text.strip().removeprefix(_SHARED).split(",")
    steps = tuple(_step(part.strip()) for part in parts)
    if any(duration == FOREVER for _, duration in steps[:-1]):
        raise ValueError(
            f'only the last step may go on for ever, like "1 for 30s, 2", not "{text}"'
        )
    return Profile(steps, shared)


def _step(text: str) -> tuple[Quantity, float]:
    amount, word, duration = text.partition(" for ")
    try:
        quantity = parse(amount.strip())
    except ValueError:
        raise ValueError(f'must be amounts like "100m" or "1 for 30s, 2", not "{text}"') from None
    lasts = parse_seconds(duration.strip()) if word else FOREVER
    if quantity.sign() < 0 or lasts <= 0:
        raise ValueError(f'amounts and durations must not be negative, but one is in "{text}"')
    return quantity, lasts


def profiles(text: str) -> dict[str, Profile]:
    """Parses profiles by names of metrics, like `hits=20; errors=1 for 1m, 0`. Raises
    ValueError.
    """
    by_metric = {}
    for part in text.split(";"):
        name, equals, rest = part.partition("=")
        if not equals or not name.strip() or "/" in name:
            raise ValueError(f'must be like "hits=20; errors=1", not "{text}"')
        by_metric[name.strip()] = profile(rest)
    return by_metric
