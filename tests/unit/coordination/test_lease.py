from __future__ import annotations

from typing import Any, cast

import pytest

from kcm import errors
from kcm.coordination import FencedLease, LeaseKeeper, new_holder
from kcm.redisio import Fence, Keys, RedisIO
from kcm.testing.clock import FakeClock


class Store:
    """Replaces Redis; a call may take `takes` seconds, or fail."""

    keys = Keys()

    def __init__(self, clock: FakeClock) -> None:
        self.clock = clock
        self.takes = 0.0  # seconds per call
        self.down = False
        self.token = "1"
        self.status = "HELD"  # the answer for each lease that is acquired
        self.calls: list[tuple[Any, ...]] = []

    def call(self, name: str, *args: Any, call_id: str | None = None) -> list[str]:
        self.calls.append((name, *args))
        self.clock.step(self.takes)
        if self.down:
            raise errors.StoreUnavailable
        if name == "lease_acquire":
            token = self.token if self.status == "HELD" else ""
            return ["OK", *[self.status, token, str(args[0])] * (len(args) // 4)]
        return ["OK", "OK"]


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def store(clock: FakeClock) -> Store:
    return Store(clock)


def lease(store: Store, **options: Any) -> FencedLease:
    return FencedLease(cast("RedisIO", store), "dispatch", "me", clock=store.clock, **options)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"duration": 2.0}, "must exceed twice renew_every"),
        ({"renew_every": 0.0}, "renew_every 0.0 s must be greater than 0"),
    ],
)
def test_periods_that_cannot_hold_a_lease_are_refused(
    store: Store, options: dict[str, Any], words: str
) -> None:
    with pytest.raises(errors.ConfigurationError, match=words):
        lease(store, **options)
    with pytest.raises(errors.ConfigurationError, match=words):
        LeaseKeeper(cast("RedisIO", store), "me", **options)


def test_a_term_is_counted_from_before_the_call_was_sent(store: Store, clock: FakeClock) -> None:
    subject = lease(store)
    store.takes = 3.0
    assert subject.try_acquire()
    clock.step(0.9)
    assert subject.held
    clock.step(0.2)
    assert not subject.held


def test_an_answer_that_comes_after_the_term_does_not_count(store: Store) -> None:
    subject = lease(store)
    store.takes = 4.5
    assert not subject.try_acquire()


def test_a_process_that_was_frozen_knows_that_it_lost(store: Store, clock: FakeClock) -> None:
    subject = lease(store)
    subject.try_acquire()
    fence = subject.fence
    clock.step(60)
    assert not subject.held
    assert subject.known_token() == ""
    assert subject.fence == fence  # what it writes still carries the old token, and is refused


def test_there_is_no_fence_without_a_term(store: Store) -> None:
    subject = lease(store)
    with pytest.raises(errors.Fenced):
        _ = subject.fence
    assert not subject.renew()
    subject.release()
    assert store.calls == []


def test_the_fence_names_the_leases_record(store: Store) -> None:
    subject = lease(store)
    subject.try_acquire()
    assert subject.fence == Fence("kcm:lease:dispatch", "token", "1")


def test_holders_are_unique_per_start() -> None:
    assert new_holder("manager") != new_holder("manager")


class Callbacks:
    """Records the callbacks of a lease."""

    def __init__(self, keeper: LeaseKeeper, name: str) -> None:
        self.events: list[str] = []
        self.lease = keeper.add(
            name,
            lambda fence: self.events.append(f"started {fence.token}"),
            lambda: self.events.append("stopped"),
        )


@pytest.fixture
def keeper(store: Store, clock: FakeClock) -> LeaseKeeper:
    return LeaseKeeper(cast("RedisIO", store), "me", clock=clock)


def test_the_keeper_holds_several_leases_with_one_call_a_pass(
    keeper: LeaseKeeper, store: Store
) -> None:
    first, second = Callbacks(keeper, "a"), Callbacks(keeper, "b")
    keeper.turn(0.0)
    keeper.turn(0.0)
    assert store.calls[0] == ("lease_acquire", "me", "a", 4000, "", "", "b", 4000, "", "")
    assert store.calls[1] == ("lease_acquire", "me", "a", 4000, "1", "", "b", 4000, "1", "")
    assert first.events == second.events == ["started 1"]


def test_the_keeper_tells_of_an_end_when_the_store_is_away_for_a_term(
    keeper: LeaseKeeper, store: Store, clock: FakeClock
) -> None:
    callbacks = Callbacks(keeper, "a")
    keeper.turn(0.0)
    store.down = True
    clock.step(3)
    keeper.turn(0.0)
    assert callbacks.events == ["started 1"]
    clock.step(2)
    keeper.turn(0.0)
    assert callbacks.events == ["started 1", "stopped"]


def test_a_new_term_is_told_as_an_end_and_a_start(
    keeper: LeaseKeeper, store: Store, clock: FakeClock
) -> None:
    callbacks = Callbacks(keeper, "a")
    keeper.turn(0.0)
    clock.step(10)
    store.token = "2"
    keeper.turn(0.0)
    assert callbacks.events == ["started 1", "stopped", "started 2"]


def test_a_callback_that_raises_costs_nothing_else(keeper: LeaseKeeper) -> None:
    def fail(_: Fence) -> None:
        raise RuntimeError

    broken = keeper.add("a", fail, lambda: None)
    callbacks = Callbacks(keeper, "b")
    keeper.turn(0.0)
    assert broken.held
    assert callbacks.events == ["started 1"]


def test_giving_up_tells_first_and_outlives_a_store_that_is_away(
    keeper: LeaseKeeper, store: Store
) -> None:
    callbacks = Callbacks(keeper, "a")
    keeper.turn(0.0)
    store.down = True
    keeper.end()
    assert callbacks.events == ["started 1", "stopped"]
    assert not callbacks.lease.held


def test_a_lease_is_shared_from_when_its_holder_is_ready(keeper: LeaseKeeper, store: Store) -> None:
    ready: list[str] = []
    keeper.add("a", lambda _: None, lambda: None, shares=lambda: bool(ready))
    keeper.turn(0.0)
    ready.append("now")
    keeper.turn(0.0)
    assert [call[-1] for call in store.calls] == ["", "1"]


def test_a_keeper_that_has_asked_looks_often_until_the_lease_should_have_been_given(
    keeper: LeaseKeeper, store: Store, clock: FakeClock
) -> None:
    Callbacks(keeper, "a")
    store.status = "ASKED"
    waits = []
    for _ in range(3):
        waits.append(keeper.turn(0.0).upkeep_in)
        clock.step(1.0)
    assert waits == [0.1, 0.1, 1.0]
    store.status = "TAKEN"
    assert keeper.turn(0.0).upkeep_in == 1.0
    store.status = "ASKED"
    assert keeper.turn(0.0).upkeep_in == 0.1


def test_a_lease_that_was_given_to_another_has_ended(keeper: LeaseKeeper, store: Store) -> None:
    callbacks = Callbacks(keeper, "a")
    keeper.turn(0.0)
    store.status = "GIVEN"
    keeper.turn(0.0)
    assert callbacks.events == ["started 1", "stopped"]
    assert not callbacks.lease.held
