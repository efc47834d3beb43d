"""Tests how seats are divided and lent.

Source: staging/src/k8s.io/apiserver/pkg/util/flowcontrol/conc_alloc_test.go, Kubernetes 1.36.
"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kcm.api.priority_levels import MANDATORY_LEVELS, SUGGESTED_LEVELS
from kcm.apiserver.flowcontrol.shares import Claim, SeatLimits, allot, divide

PARTS = st.floats(0, 5)


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


def test_a_new_cluster_has_the_seats_of_upstream() -> None:
    limits = divide([*MANDATORY_LEVELS.values(), *SUGGESTED_LEVELS], 600)
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
