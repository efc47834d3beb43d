"""Tests how seats are divided and lent.

Source: conc_alloc_test.go and exempt_borrowing_test.go in
staging/src/k8s.io/apiserver/pkg/util/flowcontrol, Kubernetes 1.36.
"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kcm.api.priority_levels import MANDATORY_LEVELS, SUGGESTED_LEVELS
from kcm.apiserver.flowcontrol.demand import Demand
from kcm.apiserver.flowcontrol.shares import (
    Claim,
    SeatLimits,
    allot,
    divide,
    lend,
    level_shares,
)

PARTS = st.floats(0, 5)
LEVELS = {level.name: level for level in (*MANDATORY_LEVELS.values(), *SUGGESTED_LEVELS)}


@st.composite
def claims(draw: st.DrawFn) -> Claim:
    lower = draw(PARTS)
    return Claim(lower + draw(PARTS), lower, lower + draw(PARTS))


@given(st.lists(claims(), min_size=1, max_size=9), st.floats(0, 1))
def test_all_get_the_same_part_of_what_they_want_within_their_bounds(
    wanted: list[Claim], between: float
) -> None:
    lowest, highest = sum(one.lower for one in wanted), sum(one.upper for one in wanted)
    seats = lowest + (highest - lowest) * between
    got = allot(seats, wanted)
    assert sum(got) == pytest.approx(seats, abs=1e-6)
    free = [
        amount / max(one.wanted, 0.001)
        for amount, one in zip(got, wanted, strict=True)
        if one.lower + 1e-6 < amount < one.upper - 1e-6
    ]
    assert free == pytest.approx([free[0]] * len(free), rel=1e-3) if free else True
    for amount, one in zip(got, wanted, strict=True):
        assert one.lower - 1e-9 <= amount <= one.upper + 1e-9


@pytest.mark.parametrize(
    ("seats", "wanted", "got"),
    [
        (24, [Claim(24, 6, 20), Claim(6, 6, 18)], [18, 6]),
        (24, [Claim(24, 6, 16), Claim(6, 6, 18)], [16, 8]),  # the first may borrow no more
        (24, [Claim(24, 12, 24), Claim(24, 12, 24)], [12, 12]),
        (30, [Claim(1, 1, 4), Claim(1, 1, 4)], [4, 4]),  # more than all may have
    ],
)
def test_bounds_hold(seats: int, wanted: list[Claim], got: list[float]) -> None:
    assert allot(seats, wanted) == pytest.approx(got)


@pytest.mark.parametrize(
    ("exempt", "wanted", "lent"),
    [
        pytest.param(970, (970, 970, 970), (120, 60, 30), id="less is left than all must keep"),
        pytest.param(330, (970, 970, 970), (180, 330, 30), id="half of what all may lend is left"),
        pytest.param(540, (970, 1, 970), (240, 60, 30), id="one lends all to exempt requests"),
        pytest.param(0, (970, 1, 30), (780, 60, 30), id="one lends all to another"),
    ],
)
def test_what_a_level_does_not_use_is_lent(
    exempt: int, wanted: tuple[int, ...], lent: tuple[int, ...]
) -> None:
    levels = [LEVELS[name] for name in ("workload-high", "workload-low", "catch-all")]
    seats = 6 * sum(level_shares(level) for level in levels)
    limits = divide(levels, seats)
    got = lend(seats, exempt, list(zip(limits.values(), map(_demand, wanted), strict=True)))
    assert tuple(got) == lent


def _demand(seats: int) -> Demand:
    """Returns what a level could use that could use so many seats all the time."""
    demand = Demand(0.0)
    demand.change(seats, 0.0)
    demand.end_period(10.0)
    return demand


def test_a_new_cluster_has_the_seats_of_upstream() -> None:
    limits = divide(list(LEVELS.values()), 600)
    assert limits == {
        "exempt": SeatLimits(0, 0, 600),
        "catch-all": SeatLimits(13, 13, 613),
        "system": SeatLimits(74, 50, 674),
        "node-high": SeatLimits(98, 74, 698),
        "leader-election": SeatLimits(25, 25, 625),
        "workload-high": SeatLimits(98, 49, 698),
        "workload-low": SeatLimits(245, 25, 845),
        "global-default": SeatLimits(49, 25, 649),
    }


@pytest.mark.parametrize(("nominal", "hand", "widest"), [(98, 6, 15), (49, 6, 8), (3, 6, 1)])
def test_one_request_takes_a_part_of_its_level(nominal: int, hand: int, widest: int) -> None:
    assert SeatLimits(nominal, 0, nominal).widest(hand) == widest
