"""Divides the server's seats among the priority levels, and lends what is not in use.

Source: finishQueueSetReconfigsLocked and updateBorrowingLocked in
staging/src/k8s.io/apiserver/pkg/util/flowcontrol/apf_controller.go, and conc_alloc.go, Kubernetes
1.36.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kcm.api.flowcontrol_v1 import PriorityLevelConfiguration
from kcm.apiserver.flowcontrol.demand import Demand

_LEAST_TARGET = 0.001
_MOST_SEATS_PERCENT = 0.15  # of a level, for one request


@dataclass(frozen=True)
class SeatLimits:
    """The seats of a priority level: its share, what it keeps at least, and what it may have at
    most.
    """

    nominal: int
    lower: int
    upper: int

    def widest(self, hand: int) -> int:
        """Returns the most seats of one request, for flows with `hand` queues."""
        return max(1, min(math.ceil(self.nominal * _MOST_SEATS_PERCENT), self.nominal // hand))


def divide(levels: Sequence[PriorityLevelConfiguration], seats: int) -> Mapping[str, SeatLimits]:
    """Returns the limits of each level by its name. `seats` is what the server has in all.

    Rounding up may make the sum a little larger.
    """
    shares = {level.name: level_shares(level) for level in levels}
    total = sum(shares.values()) or 1
    return {
        level.name: _limit(level, math.ceil(seats * shares[level.name] / total), seats)
        for level in levels
    }


def level_shares(level: PriorityLevelConfiguration) -> int:
    """Returns the nominalConcurrencyShares of a level."""
    spec = level.spec.limited or level.spec.exempt
    return (spec.nominal_concurrency_shares or 0) if spec is not None else 0


def _limit(level: PriorityLevelConfiguration, nominal: int, seats: int) -> SeatLimits:
    spec = level.spec.limited or level.spec.exempt
    lendable = round(nominal * ((spec and spec.lendable_percent) or 0) / 100)
    limited = level.spec.limited
    percent = limited.borrowing_limit_percent if limited is not None else None
    borrowed = seats if percent is None else round(nominal * percent / 100)
    return SeatLimits(nominal, nominal - lendable, nominal + borrowed)


@dataclass(frozen=True)
class Claim:
    """What a level could use in the next period, and the bounds of what it may get."""

    wanted: float
    lower: float
    upper: float


def lend(seats: int, exempt: int, levels: Sequence[tuple[SeatLimits, Demand]]) -> list[int]:
    """Returns what each limited level has in the next period, if all levels together have `seats`
    and exempt requests take `exempt` of them.

    A level has at least what it could use of its share. If exempt requests leave too little for
    that, all levels lend the same part of what they may lend.
    """
    claims = [_claim(limits, demand) for limits, demand in levels]
    left = seats - exempt
    least = sum(limits.lower for limits, _ in levels)
    own = sum(claim.lower for claim in claims)
    if left > own:
        return [round(amount) for amount in allot(seats, claims)]
    part = (left - least) / (own - least) if left > least else 0.0
    return [
        limits.lower + round((claim.lower - limits.lower) * part)
        for (limits, _), claim in zip(levels, claims, strict=True)
    ]


def _claim(limits: SeatLimits, demand: Demand) -> Claim:
    own = max(limits.lower, min(limits.nominal, demand.high))
    return Claim(max(own, demand.smoothed), own, limits.upper)


def allot(seats: float, claims: Sequence[Claim]) -> list[float]:
    """Returns what each claim gets of the seats: all get the same part of what they want, but no
    less and no more than their bounds.

    The lower bounds together are at most `seats`. If the upper ones together are less, each gets
    its upper one.
    """
    if seats >= sum(claim.upper for claim in claims):
        return [claim.upper for claim in claims]
    low, high = 0.0, max(claim.upper / max(claim.wanted, _LEAST_TARGET) for claim in claims)
    for _ in range(100):  # each halves what is between; the sum grows with the part
        part = (low + high) / 2
        if sum(_bound(claim, part) for claim in claims) < seats:
            low = part
        else:
            high = part
    return [_bound(claim, high) for claim in claims]


def _bound(claim: Claim, part: float) -> float:
    return max(claim.lower, min(claim.upper, part * max(claim.wanted, _LEAST_TARGET)))
