import threading
from collections.abc import Callable, Mapping, Sequence

import pytest

from kcm.api.scheme import Resource
from kcm.errors import CacheNotSynced, EpochChanged
from kcm.informers.freshness import CacheProgress, PullingBarrier, WaitingBarrier
from kcm.informers.source import Changes
from kcm.testing.clock import FakeClock
from tests.unit.informers.fakes import NODES, PODS, FakeSource, World, read_cache


class WaitingClock(FakeClock):
    """A fake clock whose waits call `step`."""

    def __init__(self, step: Callable[[], None]) -> None:
        super().__init__()
        self._step = step

    def wait(self, event: threading.Event, timeout: float) -> bool:
        self._step()
        return event.is_set()


STOP = threading.Event()


def test_it_does_not_wait_for_what_is_there() -> None:
    source, progress = FakeSource(), CacheProgress()
    mark = progress.mark(PODS)
    mark.advance(source.put("a/b"))

    def fail() -> None:
        raise AssertionError("waited")

    barrier = WaitingBarrier(source, progress, WaitingClock(fail))
    assert barrier.wait([PODS], 5, STOP) == {PODS: 1}


def test_it_wakes_when_every_cache_has_come_far_enough() -> None:
    source, progress = FakeSource(), CacheProgress()
    pods, nodes = progress.mark(PODS), progress.mark(NODES)
    source.put("a/b")
    source.put("n1", NODES)
    woken: list[bool] = []

    def step() -> None:
        # Whether the one who waits was woken is seen only before it looks again.
        waiter = progress._waiters[0].woken
        pods.advance(1)
        woken.append(waiter.is_set())
        nodes.advance(7)
        woken.append(waiter.is_set())

    WaitingBarrier(source, progress, WaitingClock(step)).wait([PODS, NODES], 5, STOP)
    assert woken == [False, True]
    assert not progress.has_waiters()


def test_who_waits_for_something_else_than_a_position_ends_the_rest_of_the_reads() -> None:
    progress, woken = CacheProgress(), list[str]()
    progress.on_wait(lambda: woken.append("woken"))
    with progress.hurrying(), progress.hurrying():
        assert (woken, progress.has_waiters()) == (["woken", "woken"], True)
    assert not progress.has_waiters()


def test_two_caches_of_one_kind_must_both_come() -> None:
    progress = CacheProgress()
    one, other = progress.mark(PODS), progress.mark(PODS)
    one.advance(5)
    assert progress.position_of(PODS) == -1
    other.advance(3)
    assert progress.position_of(PODS) == 3


def test_a_timeout_says_which_cache_is_late() -> None:
    source, progress = FakeSource(), CacheProgress()
    progress.mark(PODS).advance(1)
    source.put("a/b"), source.put("a/b")
    barrier = WaitingBarrier(source, progress, FakeClock())
    with pytest.raises(CacheNotSynced, match=r"within 5 s: pods at 1 of 2"):
        barrier.wait([PODS], 5, STOP)


def test_issue_129795_a_sync_waits_for_a_late_cache_again_however_long_it_is_late() -> None:
    """Upstream creates too many pods when expectations expire before the cache shows the first
    ones. In kcm a sync never begins without a fresh cache, however late the cache is.
    """
    source, progress, clock = FakeSource(), CacheProgress(), FakeClock()
    mark = progress.mark(PODS)
    mark.advance(0)
    source.put("default/web-1")
    barrier = WaitingBarrier(source, progress, clock)
    for _ in range(3):
        with pytest.raises(CacheNotSynced):
            barrier.wait([PODS], 5, STOP)
        clock.step(600)
    mark.advance(1)
    assert barrier.wait([PODS], 5, STOP) == {PODS: 1}


def test_a_cache_that_must_be_listed_again_has_reached_nothing() -> None:
    source, progress = FakeSource(), CacheProgress()
    mark = progress.mark(PODS)
    mark.advance(100)
    mark.invalidate()
    with pytest.raises(CacheNotSynced):
        WaitingBarrier(source, progress, FakeClock()).wait([PODS], 5, STOP)


def test_a_kind_without_a_cache_is_named() -> None:
    with pytest.raises(CacheNotSynced, match="no informer caches nodes"):
        WaitingBarrier(FakeSource(), CacheProgress(), FakeClock()).wait([NODES], 5, STOP)


def test_a_stop_or_a_shutdown_wakes_a_waiter() -> None:
    stop, progress, source = threading.Event(), CacheProgress(), FakeSource()
    mark = progress.mark(PODS)
    source.put("a/b"), source.put("a/b")
    woken: list[bool] = []

    def stop_and_look() -> None:
        # Whether the one who waits was woken is seen only before it looks again.
        stop.set()
        mark.advance(1)
        woken.append(progress._waiters[0].woken.is_set())

    def close_and_look() -> None:
        progress.close()
        woken.append(progress._waiters[0].woken.is_set())

    for step in (stop_and_look, close_and_look):
        with pytest.raises(CacheNotSynced):
            WaitingBarrier(source, progress, WaitingClock(step)).wait([PODS], 5, stop)
    assert woken == [True, True]


def test_a_sync_that_pulls_reads_once_when_its_kinds_have_few_changes() -> None:
    world = World(pull=True)
    world.start_informer()
    world.source.put("a/b")
    reads = len(world.source.reads)
    barrier = PullingBarrier(world.multiplexer.catch_up, world.progress, world.clock)
    assert barrier.wait([PODS], 5, STOP) == {PODS: 1}
    assert len(world.source.reads) == reads + 1


def test_a_write_between_the_read_and_the_question_is_read_as_well() -> None:
    progress, clock = CacheProgress(), FakeClock()
    mark = progress.mark(PODS)
    ends = iter([3, 4])

    def catch_up(resources: Sequence[Resource]) -> Mapping[Resource, int]:
        mark.advance(next(ends))
        return {PODS: 4}

    PullingBarrier(catch_up, progress, clock).wait([PODS], 5, STOP)
    assert (progress.position_of(PODS), clock.monotonic()) == (4, 0.0)


def test_a_sync_that_pulls_waits_until_its_kinds_are_listed_again() -> None:
    world = World(pull=True, list_backoff_jitter=0.0)
    informer = world.start_informer()
    world.source.put("a/b")
    world.source.trim()
    world.source.list_errors = [RuntimeError("no"), RuntimeError("no")]
    barrier = PullingBarrier(world.multiplexer.catch_up, world.progress, world.clock)
    barrier.wait([PODS], 5, STOP)
    assert read_cache(informer) == {"a/b": "1"}


def test_a_sync_that_pulls_gives_up_at_a_timeout_or_a_stop() -> None:
    world = World(pull=True)
    world.start_informer()
    world.source.last[PODS] = 7  # no entry will ever reach it
    barrier = PullingBarrier(world.multiplexer.catch_up, world.progress, world.clock)
    reached: dict[Resource, int] = {PODS: 5}
    world.source.read_changes = lambda positions, block_ms: Changes(  # type: ignore[method-assign]  # the log has lost what was written
        positions=reached, newest={PODS: 7}
    )
    with pytest.raises(CacheNotSynced, match=r"within 5 s: pods at 5 of 7"):
        barrier.wait([PODS], 5, STOP)
    stop = threading.Event()
    stop.set()
    with pytest.raises(CacheNotSynced):
        barrier.wait([PODS], 5, stop)


def test_informers_reach_foreign_entries_too() -> None:
    world = World()
    world.source.put("a/b")
    world.start_informer()
    world.source.foreign()
    barrier = WaitingBarrier(world.source, world.progress, WaitingClock(world.turn))
    assert barrier.wait([PODS], 5, STOP) == {PODS: 2}
    assert world.progress.position_of(PODS) == 2


def test_a_new_epoch_voids_what_was_reached_until_the_list() -> None:
    world = World()
    world.source.put("a/b")
    world.start_informer()
    assert world.progress.position_of(PODS) == 1
    world.source.read_errors = [EpochChanged()]
    world.turn()
    assert world.progress.position_of(PODS) == -1
    world.turn()
    assert world.progress.position_of(PODS) == 1
