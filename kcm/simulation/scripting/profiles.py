"""Profiles: amounts over time, like `100m`, `100m for 1m, 900m` or `shared 2 for 5m, 1 for 5m`."""

from __future__ import annotations

from dataclasses import dataclass

from kcm.apimachinery.durations import FOREVER, parse_seconds
from kcm.apimachinery.quantity import Quantity, parse

MOST_STEPS, MOST_METRICS = 100, 50  # all are gone through at every report of every pod
_SHARED = "shared "


@dataclass(frozen=True, slots=True)
class Profile:
    """An amount over time: steps of an amount and its seconds, of which the last may be FOREVER.

    If it is not, the steps repeat.
    """

    steps: tuple[tuple[Quantity, float], ...]
    shared: bool = False  # whether all pods of one controller have the amount together

    def at(self, since: float, sharers: int = 1) -> Quantity:
        """Returns the amount at `since` seconds after the start.

        A shared profile is divided by the number of sharers.
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
        """Returns the sum over the first `since` seconds, in billionths of the unit times seconds.

        It does not divide a shared profile.
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
    """Parses a profile. Raises ValueError with the correct form."""
    shared = text.strip().startswith(_SHARED)
    parts = text.strip().removeprefix(_SHARED).split(",")
    if len(parts) > MOST_STEPS:
        raise ValueError(f"must have at most {MOST_STEPS} steps, not {len(parts)}")
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
    """Parses profiles by metric names, like `hits=20; errors=1 for 1m, 0`. Raises ValueError."""
    by_metric = {}
    parts = text.split(";")
    if len(parts) > MOST_METRICS:
        raise ValueError(f"must have at most {MOST_METRICS} metrics, not {len(parts)}")
    for part in parts:
        name, equals, rest = part.partition("=")
        if not equals or not name.strip() or "/" in name:
            raise ValueError(f'must be like "hits=20; errors=1", not "{text}"')
        by_metric[name.strip()] = profile(rest)
    return by_metric
