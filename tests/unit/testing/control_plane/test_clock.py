"""The clock of a control plane."""

from __future__ import annotations

from kcm.testing.control_plane.clock import PlaneClock


def test_a_clock_that_stands_still_shows_its_time() -> None:
    clock = PlaneClock(stands_at=1000.0)
    assert clock.frozen
    assert clock.moment() == clock.now().timestamp() == 1000.0
    clock.stand_at(1000.5)
    assert clock.moment() == 1000.5


def test_a_clock_goes_on_from_where_it_stood() -> None:
    clock = PlaneClock(stands_at=1000.0)
    clock.go_on()
    assert not clock.frozen
    first = clock.moment()
    assert 1000.0 <= first <= clock.moment() < 1060.0
    ahead = clock.ahead
    clock.go_on()
    assert clock.ahead == ahead, "a clock that goes on already is left alone"
