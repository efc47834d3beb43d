"""Token buckets in Redis: no more tokens than the rate allows, for any callers at any times."""

from __future__ import annotations

import threading

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kcm import errors
from kcm.api.scheme import BUILT_IN
from kcm.redisio import RedisIO
from kcm.redisio.scripts import NO_FENCE
from kcm.store import Conditions, Store
from kcm.store.writes.guards import Exists, TokenAvailable
from tests.new_objects import make_namespaces, pod
from tests.server_clock import step


def set_limit(io: RedisIO, rate: float | str, burst: float = 1.0, name: str = "b") -> None:
    assert io.call("limiter_set", *NO_FENCE, name, rate, burst) == ["OK"]


def take(io: RedisIO) -> bool:
    return bool(io.call("limiter_take", "b")[0] == "OK")


def test_a_bucket_starts_full_and_fills_at_its_rate(io: RedisIO) -> None:
    set_limit(io, 0.1)
    assert take(io)
    assert not take(io)
    step(io, 9.5)
    assert not take(io)
    step(io, 0.5)
    assert take(io)
    step(io, 1000)
    assert [take(io) for _ in range(3)] == [True, False, False]


def test_nobody_takes_from_what_was_not_set_up(io: RedisIO) -> None:
    assert not take(io)
    set_limit(io, 0)
    assert not take(io)
    set_limit(io, 0.001)
    assert io.call("limiter_read", "b", "other")[3:] == ["0.000", "", "", ""]
    set_limit(io, "")
    assert io.call("limiter_read", "b") == ["OK", "", "", ""]


def test_setting_the_same_rate_again_resets_nothing(io: RedisIO) -> None:
    set_limit(io, 0.1)
    assert take(io)
    set_limit(io, 0.1)
    assert not take(io)


@pytest.mark.parametrize("empty", [True, False])
def test_an_empty_bucket_stays_empty_at_another_rate(io: RedisIO, empty: bool) -> None:
    set_limit(io, 0.1)
    if empty:
        assert take(io)
    set_limit(io, 0.01)
    assert take(io) is not empty
    step(io, 100)
    assert take(io)


def test_a_bucket_that_gave_nothing_starts_empty(io: RedisIO) -> None:
    set_limit(io, 0.1)
    set_limit(io, 0)
    step(io, 1000)
    set_limit(io, 0.1)
    assert not take(io)
    step(io, 10)
    assert take(io)


def test_a_lost_fence_changes_no_rate(io: RedisIO) -> None:
    assert io.call("limiter_set", "kcm:lease:x", "token", "1", "b", 5, 5) == ["FENCED"]
    assert not take(io)


@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    rate=st.sampled_from([0.05, 0.1, 0.3, 1.0, 2.5, 40.0]),
    waits=st.lists(st.tuples(st.integers(0, 20_000), st.integers(1, 6)), max_size=25),
)
def test_no_stretch_of_time_gives_more_than_burst_and_rate_allow(
    io: RedisIO, rate: float, waits: list[tuple[int, int]]
) -> None:
    burst = max(1.0, rate)
    set_limit(io, "")
    set_limit(io, rate, burst)
    taken: list[float] = []
    for milliseconds, tries in waits:
        step(io, milliseconds / 1000)
        for _ in range(tries):
            if take(io):
                seconds, micros = io.execute("TIME")
                taken.append(int(seconds) + int(micros) / 1e6 + io.clock_offset_ms / 1000)
    for first in range(len(taken)):
        for last in range(first, len(taken)):
            allowed = burst + rate * (taken[last] - taken[first]) + 0.01
            assert last - first + 1 <= allowed


def test_a_write_and_its_token_are_one_step(io: RedisIO) -> None:
    store = Store(io)
    make_namespaces(store, "default")
    set_limit(io, 0.1)
    paid = Conditions(guards=(TokenAvailable("b"),))
    store.create(pod("a"), paid)
    with pytest.raises(errors.LimitReached, match="no token left in b"):
        store.create(pod("b"), paid)
    assert store.count(BUILT_IN.lookup("pods")) == 1


def test_a_write_that_is_refused_for_another_reason_costs_nothing(io: RedisIO) -> None:
    store = Store(io)
    make_namespaces(store, "default")
    set_limit(io, 0.1)
    paid = TokenAvailable("b")
    missing = Exists("nodes", "n1")
    with pytest.raises(errors.GuardFailed):
        store.create(pod("a"), Conditions(guards=(missing, paid)))
    store.create(pod("a"), Conditions(guards=(paid,)))
    with pytest.raises(errors.AlreadyExists):
        store.create(pod("a"), Conditions(guards=(paid,)))


def test_many_threads_take_each_token_once(io: RedisIO) -> None:
    set_limit(io, 0.001, 25)
    taken: list[bool] = []
    threads = [
        threading.Thread(target=lambda: taken.extend(take(io) for _ in range(20))) for _ in range(6)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(taken), sum(taken)) == (120, 25)
