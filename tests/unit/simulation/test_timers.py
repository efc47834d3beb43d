from __future__ import annotations

from kcm.simulation.timers import Timers

FOREVER = float("inf")


def test_keys_come_when_they_are_due_in_their_order() -> None:
    timers: Timers[str] = Timers()
    timers.set("b", 2.0)
    timers.set("a", 1.0)
    timers.set("c", 3.0)
    assert timers.next() == 1.0
    assert list(timers.pop_due(2.0)) == ["a", "b"]
    assert timers.next() == 3.0


def test_the_last_moment_that_was_set_counts() -> None:
    timers: Timers[str] = Timers()
    timers.set("a", 1.0)
    timers.set("a", 5.0)
    assert list(timers.pop_due(4.0)) == []
    timers.set("a", 2.0)
    assert list(timers.pop_due(4.0)) == ["a"]
    assert list(timers.pop_due(9.0)) == []


def test_forever_and_cancel_mean_not_at_all() -> None:
    timers: Timers[str] = Timers()
    timers.set("a", 1.0)
    timers.set("a", FOREVER)
    timers.set("b", 1.0)
    timers.cancel("b")
    assert (timers.next(), len(timers)) == (FOREVER, 0)
