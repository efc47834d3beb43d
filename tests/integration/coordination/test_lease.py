"""Tests fenced leases on a real server."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from kcm import errors
from kcm.coordination import FencedLease, LeaseKeeper
from kcm.coordination.workqueue import Addition, dispatch
from kcm.loops import ThreadHost
from kcm.redisio import Fence, RedisIO
from kcm.testing.waiting import until
from tests.server_clock import step


def lease(io: RedisIO, holder: str, name: str = "dispatch") -> FencedLease:
    return FencedLease(io, name, holder)


def writes(io: RedisIO, fence: Fence) -> bool:
    try:
        dispatch(io, fence, {"pods": 1}, [Addition("q", ("a",))])
    except errors.Fenced:
        return False
    return True


def test_one_holds_the_others_see_who(io: RedisIO) -> None:
    first, second = lease(io, "one"), lease(io, "two")
    assert first.try_acquire()
    assert not second.try_acquire()
    assert second.seen_holder == "one"
    assert not second.held


def test_an_ended_term_goes_to_another_and_the_old_fence_is_refused(io: RedisIO) -> None:
    first, second = lease(io, "one"), lease(io, "two")
    first.try_acquire()
    old = first.fence
    assert writes(io, old)
    step(io, 4.1)
    assert second.try_acquire()
    assert not writes(io, old)
    assert writes(io, second.fence)
    assert not first.renew()
    assert not first.held


def test_renewal_keeps_the_term_and_its_token(io: RedisIO) -> None:
    first, second = lease(io, "one"), lease(io, "two")
    first.try_acquire()
    fence = first.fence
    for _ in range(5):
        step(io, 3)
        assert first.renew()
        assert not second.try_acquire()
    assert first.try_acquire()  # as good as a renewal
    assert first.fence == fence


def test_a_term_that_ended_is_not_renewed_even_if_nobody_took_it(io: RedisIO) -> None:
    first = lease(io, "one")
    first.try_acquire()
    old = first.fence
    step(io, 5)
    assert not first.renew()
    assert first.try_acquire()
    assert int(first.fence.token) > int(old.token)
    assert not writes(io, old)


def test_the_same_holder_after_a_restart_gets_a_new_token(io: RedisIO) -> None:
    first, restarted = lease(io, "one"), lease(io, "one")
    first.try_acquire()
    assert restarted.try_acquire()
    assert not writes(io, first.fence)
    assert writes(io, restarted.fence)


def test_a_released_lease_is_free_at_once_and_its_fence_void(io: RedisIO) -> None:
    first, second = lease(io, "one"), lease(io, "two")
    first.try_acquire()
    fence = first.fence
    first.release()
    assert not writes(io, fence)
    assert second.try_acquire()
    first.release()
    assert second.renew()


def test_a_restart_of_the_server_voids_the_token_and_gives_a_new_one(io: RedisIO) -> None:
    first = lease(io, "one")
    first.try_acquire()
    old = first.fence
    io.execute("HSET", io.keys.meta(), "run_id", "before-restart")
    io.attach()
    assert not writes(io, old)
    assert not first.renew()
    assert first.try_acquire()
    assert writes(io, first.fence)


def record_changes(
    changes: list[tuple[str, str]], name: str, holder: str
) -> tuple[Callable[[object], None], Callable[[], None]]:
    """Returns callbacks that record when a holder starts and stops holding a lease."""
    return (
        lambda _: changes.append((name, f"{holder} started")),
        lambda: changes.append((name, f"{holder} stopped")),
    )


def test_two_keepers_share_out_leases_and_hand_them_over_on_stop(io: RedisIO) -> None:
    changes: list[tuple[str, str]] = []
    hosts = []
    for holder in ("one", "two"):
        keeper = LeaseKeeper(io, holder, duration=1.0, renew_every=0.05)
        for name in ("dispatch", "ingest"):
            keeper.add(name, *record_changes(changes, name, holder))
        hosts.append(ThreadHost())
        hosts[-1].run(keeper)
        until(lambda: len(changes) >= 2)
    assert changes == [("dispatch", "one started"), ("ingest", "one started")]
    hosts[0].stop()
    until(lambda: len(changes) >= 6)
    hosts[1].stop()
    for name in ("dispatch", "ingest"):
        assert [what for lease_name, what in changes if lease_name == name] == [
            "one started",
            "one stopped",
            "two started",
            "two stopped",
        ]


@pytest.mark.parametrize("takers", [4])
def test_of_many_who_try_at_once_one_gets_it(io: RedisIO, takers: int) -> None:
    leases = [lease(io, f"h{i}", "one-of-many") for i in range(takers)]
    barrier = threading.Barrier(takers)

    def attempt(mine: FencedLease) -> None:
        barrier.wait()
        mine.try_acquire()

    threads = [threading.Thread(target=attempt, args=(mine,)) for mine in leases]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert sum(mine.held for mine in leases) == 1


def set_back(io: RedisIO, seconds: int) -> None:
    """Makes the server's clock look set back by `seconds` just now."""
    now, micros = io.execute("TIME")
    ahead = (int(now) + seconds) * 1000 + int(micros) // 1000
    io.execute("HSET", io.keys.meta(), "clock", ahead)


def test_a_term_ends_in_time_though_the_clock_was_set_back(io: RedisIO) -> None:
    step(io, 3600)
    lease(io, "one").try_acquire()
    step(io, -3600)
    second = lease(io, "two")
    assert not second.try_acquire()  # its end lies an hour ahead
    set_back(io, 3600)
    assert not second.try_acquire()
    step(io, 4.1)
    assert second.try_acquire()
    assert second.renew()


def test_the_clock_may_be_set_back_again_and_again(io: RedisIO) -> None:
    before = io.now()
    for _ in range(3):
        set_back(io, 600)
        lease(io, "one").try_acquire()
    assert 1799 < io.now() - before < 1830


def test_a_small_step_is_waited_out(io: RedisIO) -> None:
    before = io.now()
    set_back(io, 1)
    lease(io, "one").try_acquire()
    assert io.now() - before < 30
    assert io.execute("HGET", io.keys.meta(), "set_back") is None


@pytest.mark.parametrize("text", ["", "x", "-5", "inf", "nan", "1e300", "9" * 400, "0x10"])
@pytest.mark.parametrize("field", ["clock", "set_back"])
def test_nonsense_in_place_of_the_clock_stops_nothing(io: RedisIO, field: str, text: str) -> None:
    io.execute("HSET", io.keys.meta(), field, text)
    first = lease(io, "one")
    assert first.try_acquire()
    assert first.renew()
    assert writes(io, first.fence)
