"""The host with threads: turns, waits, failures, leases, and the end."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from kcm import errors
from kcm.loops import ThreadHost, Turn
from kcm.testing.clock import FakeClock
from tests.unit.loops.loops import TIMEOUT, NotingLoop


class Lease:
    held = False


class BlockingClock(FakeClock):
    """A fake clock whose waits last as long as the event is not set, and no time passes."""

    def wait(self, event: threading.Event, timeout: float) -> bool:
        self.waited = timeout
        return event.wait(TIMEOUT)


@pytest.fixture
def host() -> Iterator[ThreadHost]:
    host = ThreadHost(FakeClock(), patience=0.5)
    yield host
    host.stop()


def test_a_loop_begins_once_and_has_a_turn_whenever_it_is_due(host: ThreadHost) -> None:
    loop = NotingLoop(Turn(due_in=5.0), Turn(upkeep_in=7.0), Turn())
    host.run(loop)
    loop.wait_for(turns=3)
    assert loop.notes == ["noting begin", *["noting turn"] * 3]


def test_a_loop_that_is_never_due_waits_until_it_is_woken(host: ThreadHost) -> None:
    loop = NotingLoop()
    host.run(loop)
    loop.wait_for(turns=1)
    loop.wake()
    loop.wait_for(turns=2)


def test_waking_ends_a_wait() -> None:
    clock = BlockingClock()
    host, loop = ThreadHost(clock), NotingLoop(Turn(due_in=3600.0))
    host.run(loop)
    loop.wait_for(turns=1)
    loop.wake()
    loop.wait_for(turns=2)
    host.stop()
    assert clock.waited == 3600.0


def test_a_loop_that_gathers_waits_a_moment_after_it_was_woken() -> None:
    waits: list[float] = []

    class Clock(FakeClock):
        def wait(self, event: threading.Event, timeout: float) -> bool:
            waits.append(timeout)
            return super().wait(event, timeout)

    host, loop = ThreadHost(Clock()), NotingLoop()
    loop.gathers = 0.05
    host.run(loop)
    loop.wait_for(turns=1)
    loop.wake()
    loop.wait_for(turns=2)
    host.stop()
    assert waits[0] == 0.05


def test_a_loop_that_reads_gets_the_hosts_patience_and_no_other_wait(host: ThreadHost) -> None:
    loop = NotingLoop(Turn(due_in=3600.0), Turn(due_in=3600.0), reads=True)
    host.run(loop)
    loop.wait_for(turns=3)
    assert set(loop.patience) == {0.5}


def test_a_loop_that_fails_is_logged_counted_and_begun_again() -> None:
    host = ThreadHost(FakeClock())
    loop = NotingLoop(errors.StoreUnavailable("away"), ValueError("a bug"), Turn())
    host.run(loop)
    loop.wait_for(turns=3)
    host.stop()
    assert loop.count("begin") == 3
    assert host.failures == {"noting": 2}


def test_the_back_off_doubles_up_to_a_second_and_is_reset_by_a_turn() -> None:
    waits: list[float] = []

    class Clock(FakeClock):
        def wait(self, event: threading.Event, timeout: float) -> bool:
            waits.append(timeout)
            return super().wait(event, timeout)

    host = ThreadHost(Clock())
    away = errors.StoreUnavailable("away")
    loop = NotingLoop(*[away] * 6, Turn(due_in=9.0), away, Turn())
    host.run(loop)
    loop.wait_for(turns=9)
    host.stop()
    limits = [0.1, 0.2, 0.4, 0.8, 1.0, 1.0, 9.0, 0.1]
    assert all(limit / 2 <= wait <= limit for wait, limit in zip(waits, limits, strict=False))
    assert waits[6] == 9.0


def test_a_loop_with_a_lease_has_turns_only_while_it_is_held(host: ThreadHost) -> None:
    lease = Lease()
    loop, other = NotingLoop(lease=lease, reads=True), NotingLoop(*[Turn(due_in=1.0)] * 9, name="o")
    host.run(loop, other)
    other.wait_for(turns=9)
    assert loop.notes == []
    lease.held = True
    loop.wait_for(turns=1)


def test_a_loop_that_is_fenced_begins_again(host: ThreadHost) -> None:
    lease = Lease()
    lease.held = True
    loop = NotingLoop(errors.Fenced("taken over"), Turn(), lease=lease)
    host.run(loop)
    loop.wait_for(turns=2)
    assert loop.count("begin") == 2
    assert host.failures == {"noting": 0}


def test_a_stop_ends_every_loop_whatever_it_waits_for() -> None:
    host, loop, other = ThreadHost(BlockingClock()), NotingLoop(), NotingLoop(Turn(due_in=60.0))
    host.run(loop, other)
    loop.wait_for(turns=1)
    other.wait_for(turns=1)
    host.stop()
    assert loop.notes[-1] == other.notes[-1] == "noting end"


def test_what_ended_without_a_stop_is_dead(host: ThreadHost) -> None:
    ended = threading.Event()
    host.keep("kept", lambda stop: ended.set())
    host.run(NotingLoop(name="alive"))
    assert ended.wait(TIMEOUT)
    host.threads[0].join(TIMEOUT)
    assert host.list_dead() == ["kept"]


def test_nothing_is_dead_after_a_stop() -> None:
    host = ThreadHost(FakeClock())
    host.run(NotingLoop())
    host.stop()
    assert host.list_dead() == []


def test_spawned_work_may_fail_without_harm(host: ThreadHost) -> None:
    done = threading.Event()

    def work() -> None:
        done.set()
        raise ValueError("a bug")

    host.spawn("work", work)
    assert done.wait(TIMEOUT)
    assert host.list_dead() == []


def test_work_is_repeated_while_the_block_runs_although_it_fails(host: ThreadHost) -> None:
    repeated = threading.Semaphore(0)

    def work() -> None:
        repeated.release()
        raise errors.StoreUnavailable("away")

    with host.repeat("keeper", 1.0, work):
        assert repeated.acquire(timeout=TIMEOUT)
        assert repeated.acquire(timeout=TIMEOUT)
