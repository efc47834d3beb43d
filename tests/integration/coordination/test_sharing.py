"""Tests leases that keepers share, on a real server."""

from __future__ import annotations

import pytest

from kcm.clock import RealClock
from kcm.coordination import LeaseKeeper
from kcm.coordination.lease import FencedLease, acquire_all
from kcm.loops import ThreadHost
from kcm.redisio import RedisIO
from kcm.testing.waiting import until
from tests.server_clock import step

NAMES = [f"dispatch:kind{number}" for number in range(60)]


class Sharer:
    """A keeper of all the leases, with a turn whenever the test says so."""

    def __init__(self, io: RedisIO, holder: str, *, shares: bool = True) -> None:
        self.keeper = LeaseKeeper(io, holder)
        self.stops = 0
        self.leases = {
            name: self.keeper.add(name, lambda _: None, self._count, shares=lambda: shares)
            for name in NAMES
        }

    def _count(self) -> None:
        self.stops += 1

    def held(self) -> set[str]:
        return {name for name, lease in self.leases.items() if lease.held}


def let_all_turn(*sharers: Sharer, times: int = 3) -> None:
    for _ in range(times):
        for sharer in sharers:
            sharer.keeper.turn(0.0)


def check_each_is_held_once(*sharers: Sharer) -> None:
    assert sorted(name for sharer in sharers for name in sharer.held()) == sorted(NAMES)


def test_a_keeper_that_comes_gets_its_share_after_one_renewal(io: RedisIO) -> None:
    first, second = Sharer(io, "one"), Sharer(io, "two")
    let_all_turn(first, times=1)
    assert first.held() == set(NAMES)
    second.keeper.turn(0.0)  # asks
    first.keeper.turn(0.0)  # gives
    second.keeper.turn(0.0)
    check_each_is_held_once(first, second)
    assert 15 <= len(second.held()) <= 45
    assert first.stops == len(second.held())
    let_all_turn(first, times=1)  # has the smaller weight for what it gave
    assert {first.leases[name].seen_status for name in second.held()} == {"TAKEN"}


def test_only_what_goes_to_the_one_that_comes_moves(io: RedisIO) -> None:
    first, second, third = Sharer(io, "one"), Sharer(io, "two"), Sharer(io, "three")
    let_all_turn(first, second)
    before = first.held(), second.held()
    let_all_turn(first, second, third)
    check_each_is_held_once(first, second, third)
    assert 8 <= len(third.held()) <= 35
    assert first.held() == before[0] - third.held()
    assert second.held() == before[1] - third.held()
    stops = first.stops, second.stops
    let_all_turn(first, second, third, times=5)
    assert (first.stops, second.stops) == stops  # nothing goes to and fro


def test_who_comes_first_does_not_matter_for_who_has_what(io: RedisIO) -> None:
    held = []
    for order in (("one", "two", "three"), ("three", "one", "two")):
        sharers = {holder: Sharer(io, holder) for holder in order}
        let_all_turn(*sharers.values(), times=5)
        held.append({holder: sharer.held() for holder, sharer in sharers.items()})
        for sharer in sharers.values():
            sharer.keeper.end()
    assert held[0] == held[1]


@pytest.mark.parametrize("dies", [False, True])
def test_what_one_that_goes_had_is_shared_by_the_others(io: RedisIO, dies: bool) -> None:
    first, second, third = Sharer(io, "one"), Sharer(io, "two"), Sharer(io, "three")
    let_all_turn(first, second, third)
    if dies:
        for _ in range(5):
            step(io, 1)
            let_all_turn(first, second, times=1)
    else:
        third.keeper.end()
    let_all_turn(first, second)
    check_each_is_held_once(first, second)
    assert first.held()
    assert second.held()


def test_one_that_died_after_it_asked_is_given_nothing(io: RedisIO) -> None:
    first, second = Sharer(io, "one"), Sharer(io, "two")
    let_all_turn(first, times=1)
    second.keeper.turn(0.0)
    step(io, 2.1)
    let_all_turn(first, times=1)
    assert first.held() == set(NAMES)


def test_one_that_is_not_ready_asks_for_nothing_and_takes_what_is_free(io: RedisIO) -> None:
    first, second = Sharer(io, "one"), Sharer(io, "two", shares=False)
    let_all_turn(first, second)
    assert first.held() == set(NAMES)
    first.keeper.end()
    let_all_turn(second)
    assert second.held() == set(NAMES)


def test_a_holder_that_does_not_share_gives_nothing(io: RedisIO) -> None:
    first, second = Sharer(io, "one", shares=False), Sharer(io, "two")
    let_all_turn(first, second)
    assert first.held() == set(NAMES)


def test_the_one_who_was_given_a_lease_has_a_token_that_nobody_had(io: RedisIO) -> None:
    first, second = Sharer(io, "one"), Sharer(io, "two")
    let_all_turn(first, times=1)
    before = {name: lease.fence for name, lease in first.leases.items()}
    let_all_turn(first, second)
    for name in second.held():
        assert int(second.leases[name].fence.token) > int(before[name].token)


@pytest.mark.parametrize("asked", ["x", "-1", "9" * 13, "9" * 400, ""])
def test_what_a_stranger_writes_as_the_one_who_asks_takes_nothing(io: RedisIO, asked: str) -> None:
    lease = FencedLease(io, "dispatch:pods", "one")
    assert lease.try_acquire()
    for number in range(20):  # some of them have a greater weight
        asker = ("asker", f"stranger{number}", "asked", asked)
        io.execute("HSET", io.keys.lease("dispatch:pods"), *asker)
        acquire_all(io, "one", {lease: True}, RealClock())
        assert lease.held


def test_keepers_in_threads_hand_leases_over_within_a_few_looks(io: RedisIO) -> None:
    hosts = []
    sharers = [Sharer(io, holder) for holder in ("one", "two")]
    for sharer in sharers:
        hosts.append(ThreadHost())
        hosts[-1].run(sharer.keeper)
        until(sharer.held)
    until(lambda: len(sharers[0].held()) + len(sharers[1].held()) == len(NAMES))
    for host in hosts:
        host.stop()
