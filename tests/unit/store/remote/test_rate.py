from __future__ import annotations

from kcm.store.remote.rate import RequestRate
from kcm.testing.clock import FakeClock


def test_after_a_burst_requests_wait_for_their_turn() -> None:
    clock = FakeClock()
    rate = RequestRate(10.0, 2, clock)
    assert [rate.reserve() for _ in range(4)] == [0.0, 0.0, 0.1, 0.2]
    clock.step(0.2)
    assert rate.reserve() == 0.1
    clock.step(60)
    assert [rate.reserve() for _ in range(3)] == [0.0, 0.0, 0.1]


def test_without_a_limit_nobody_waits() -> None:
    rate = RequestRate(0.0, 1, FakeClock())
    assert [rate.reserve() for _ in range(100)] == [0.0] * 100
