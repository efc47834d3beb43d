"""Back-off of crashed containers."""

from __future__ import annotations

from kcm.helpers.backoff import Backoff
from kcm.testing.clock import FakeClock


def measure_waits(clock: FakeClock, backoff: Backoff, crashes: int) -> list[float]:
    seconds = []
    for _ in range(crashes):
        ended = clock.now()
        while backoff.is_in_backoff("main", ended):
            clock.step(1)
        seconds.append((clock.now() - ended).total_seconds())
        backoff.next("main", ended)
    return seconds


def test_the_wait_doubles_from_ten_seconds_to_five_minutes() -> None:
    clock = FakeClock()
    assert measure_waits(clock, Backoff(clock), 8) == [0, 10, 20, 40, 80, 160, 300, 300]


def test_ten_minutes_without_a_crash_start_it_over() -> None:
    clock = FakeClock()
    backoff = Backoff(clock)
    measure_waits(clock, backoff, 5)
    clock.step(600)
    assert measure_waits(clock, backoff, 1) != [0]
    clock.step(601)
    assert measure_waits(clock, backoff, 2) == [0, 10]


def test_quiet_keys_are_forgotten() -> None:
    clock = FakeClock()
    backoff = Backoff(clock)
    backoff.next("main", clock.now())
    backoff.gc()
    assert backoff.delay("main") == 10
    clock.step(601)
    backoff.gc()
    assert backoff.delay("main") == 0
