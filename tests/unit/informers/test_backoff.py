import random

import pytest

from kcm.informers.backoff import BackoffManager
from kcm.testing.clock import FakeClock


def backoff(clock: FakeClock, jitter: float = 0.0) -> BackoffManager:
    return BackoffManager(
        clock, random.Random(1), initial=0.8, maximum=30.0, reset_after=120.0, jitter=jitter
    )


def test_waits_double_up_to_the_maximum() -> None:
    backoff_manager = backoff(FakeClock())
    waits = [backoff_manager.next() for _ in range(8)]
    assert waits == pytest.approx([0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 30.0, 30.0])


def test_jitter_stretches_by_up_to_its_share() -> None:
    backoff_manager = backoff(FakeClock(), jitter=1.0)
    waits = [backoff_manager.next() / base for base in (0.8, 1.6, 3.2, 6.4)]
    assert all(1.0 <= stretched <= 2.0 for stretched in waits)
    assert len(set(waits)) == 4


def test_two_quiet_minutes_forget_the_failures() -> None:
    clock = FakeClock()
    backoff_manager = backoff(clock)
    backoff_manager.next(), backoff_manager.next()
    clock.step(119.9)
    assert backoff_manager.next() == pytest.approx(3.2)
    clock.step(120)
    assert backoff_manager.next() == pytest.approx(0.8)


def test_the_first_attempt_may_come_at_once_and_repeated_ones_wait() -> None:
    clock = FakeClock()
    backoff_manager = backoff(clock)
    assert [backoff_manager.next_or_now() for _ in range(3)] == pytest.approx([0.0, 0.8, 1.6])
    clock.step(120)
    assert backoff_manager.next_or_now() == 0.0


def test_reset_forgets_at_once() -> None:
    backoff_manager = backoff(FakeClock())
    backoff_manager.next(), backoff_manager.next()
    backoff_manager.reset()
    assert backoff_manager.next() == pytest.approx(0.8)
