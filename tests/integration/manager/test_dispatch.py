"""Tests that every write enqueues its keys, also over restarts and changes of the leader."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial

import pytest

from kcm.api.scheme import BUILT_IN
from kcm.clock import RealClock
from kcm.coordination import FencedLease
from kcm.coordination.workqueue import Addition, KeyLease, Standby
from kcm.manager.context.context import ControllerContext
from kcm.manager.dispatch import Dispatcher, KindDispatcher, WatchRoute
from kcm.manager.recovery import recover
from kcm.reconcile.contract import Change
from kcm.redisio import RedisIO
from kcm.store import Store
from kcm.store.watch import Retention, trim
from kcm.testing.waiting import until
from tests.new_objects import pod, replica_set

PODS = BUILT_IN.lookup("pods")
SETS = BUILT_IN.lookup("rs")


class Bench:
    """The dispatchers of one manager, driven by the test; only the informers have a thread."""

    def __init__(self, context: ControllerContext, holder: str) -> None:
        self.context = context
        context.caches.ensure(list(context.controllers))
        (controller,) = context.controllers
        self.crashes: list[str] = []
        self.kinds = [
            KindDispatcher(
                resource,
                [
                    WatchRoute(
                        controller,
                        watch,
                        lambda: context.caches.view(controller, context.clock.now()),
                    )
                ],
                FencedLease(context.io, f"dispatch:{resource.name}", holder),
                lambda: None,
                lambda name, error: self.crashes.append(name),
            )
            for resource, watch in zip((SETS, PODS), controller.watches(), strict=True)
        ]
        self.dispatcher = Dispatcher(context.io, self.kinds, RealClock(), context.standby)

    def lead(self) -> None:
        for kind in self.kinds:
            assert kind.lease.try_acquire()

    def resign(self) -> None:
        for kind in self.kinds:
            kind.lease.release()

    def start(self, *, recovers: bool = True) -> None:
        for kind in self.kinds:
            informer = self.context.caches.informer(kind.resource.model)
            informer.add_event_handler_with_resync_period(kind, 0.0, direct=True)
            informer.add_relist_handler(partial(self.dispatcher.on_relist, kind))
        self.context.start()
        if recovers:
            recover(self.context, self.kinds)

    def settle(self) -> None:
        """Waits until every event so far has reached the dispatchers."""
        self.context.wait_fresh([PODS, SETS])


def take_waiting_keys(io: RedisIO) -> set[str]:
    keys = io.execute("ZRANGE", io.keys.queue("recording", "waiting"), 0, -1)
    io.execute("DEL", io.keys.queue("recording", "waiting"))
    return {key.decode() for key in keys}


@pytest.fixture
def bench(context: ControllerContext) -> Bench:
    return Bench(context, "one")


def test_a_write_marks_its_keys_and_stores_the_position(bench: Bench, io: RedisIO) -> None:
    bench.lead()
    bench.start()
    stored = Store(io).create(pod("a", labels={"for": "web"}))
    bench.settle()
    bench.dispatcher.flush()
    assert take_waiting_keys(io) == {"default/web"}
    position = io.execute("HGET", io.keys.dispatch_position(), "pods")
    assert position.decode() == stored.metadata.resource_version


def test_the_position_of_what_touches_no_key_waits_for_a_turn(bench: Bench, io: RedisIO) -> None:
    def position() -> bytes | None:
        found: bytes | None = io.execute("HGET", io.keys.dispatch_position(), "pods")
        return found

    bench.lead()
    bench.start()
    bench.settle()
    bench.dispatcher.turn(0)
    before, store = position(), Store(io)
    store.create(pod("a"))
    last = store.create(pod("b"))
    bench.settle()
    bench.dispatcher.send()
    assert position() == before
    bench.dispatcher.turn(0)
    assert (position() or b"").decode() == last.metadata.resource_version


def test_a_key_is_sent_at_once_with_the_positions_before_it(bench: Bench, io: RedisIO) -> None:
    bench.lead()
    bench.start()
    store = Store(io)
    store.create(pod("a"))
    store.create(pod("b", labels={"for": "web"}))
    last = store.create(pod("c"))
    bench.settle()
    bench.dispatcher.send()
    assert take_waiting_keys(io) == {"default/web"}
    position = io.execute("HGET", io.keys.dispatch_position(), "pods")
    assert position.decode() == last.metadata.resource_version


@contextmanager
def waiting_run(context: ControllerContext) -> Iterator[tuple[Bench, Future[Sequence[KeyLease]]]]:
    """Gives a leading manager with a run that waits, and a pod that the run is to sync."""
    context.standby = Standby(threads=2)
    bench = Bench(context, "one")
    bench.lead()
    bench.start()
    with ThreadPoolExecutor(1) as pool:
        run = pool.submit(context.standby.wait, "recording", 30.0)
        until(lambda: context.standby.list_waiting() == ("recording",))
        Store(context.io).create(pod("a", labels={"for": "web"}))
        bench.settle()
        yield bench, run


def test_a_run_of_this_process_that_waits_gets_its_key_at_once(
    context: ControllerContext, io: RedisIO
) -> None:
    with waiting_run(context) as (bench, run):
        bench.dispatcher.send()
        assert [lease.key for lease in run.result(10)] == ["default/web"]
    assert take_waiting_keys(io) == set()


def test_a_run_that_waits_ends_when_its_key_cannot_be_sent(
    context: ControllerContext, io: RedisIO
) -> None:
    with waiting_run(context) as (bench, run):
        io.execute("HSET", io.keys.lease("dispatch:pods"), "token", "9")
        bench.dispatcher.send()
        assert run.result(10) == []
    assert take_waiting_keys(io) == set()


def test_a_moved_label_marks_the_old_and_the_new_owner(bench: Bench, io: RedisIO) -> None:
    bench.lead()
    Store(io).create(pod("a", labels={"for": "old"}))
    bench.start()
    bench.settle()
    bench.dispatcher.flush()
    take_waiting_keys(io)
    Store(io).patch(PODS, "default/a", {"metadata": {"labels": {"for": "new"}}})
    bench.settle()
    bench.dispatcher.flush()
    assert take_waiting_keys(io) == {"default/old", "default/new"}


def test_a_standby_takes_over_where_the_leader_stopped(bench: Bench, io: RedisIO) -> None:
    bench.start()
    store = Store(io)
    store.create(pod("a", labels={"for": "done"}))
    last = store.create(pod("b", labels={"for": "done"}))
    io.execute("HSET", io.keys.dispatch_position(), "pods", last.metadata.resource_version or "")
    store.create(pod("c", labels={"for": "left"}))
    bench.settle()
    bench.dispatcher.follow()
    bench.lead()
    bench.dispatcher.flush()
    assert take_waiting_keys(io) == {"default/left"}


def test_a_cold_start_marks_everything_there_is(bench: Bench, io: RedisIO) -> None:
    store = Store(io)
    store.create(replica_set("web"))
    store.create(pod("a", labels={"for": "other"}))
    bench.lead()
    bench.start()
    bench.settle()
    bench.dispatcher.flush()
    assert take_waiting_keys(io) == {"default/web", "default/other"}


def test_a_cold_start_hears_of_deletions_since_the_position(bench: Bench, io: RedisIO) -> None:
    store = Store(io)
    created_pod = store.create(pod("a", labels={"for": "web"}))
    io.execute(
        "HSET", io.keys.dispatch_position(), "pods", created_pod.metadata.resource_version or ""
    )
    store.delete(PODS, "default/a")
    bench.lead()
    bench.start()
    bench.settle()
    bench.dispatcher.flush()
    assert take_waiting_keys(io) == {"default/web"}


def test_nothing_is_sent_before_the_deletions_since_the_position_are_known(
    bench: Bench, io: RedisIO
) -> None:
    store = Store(io)
    before = store.create(pod("a", labels={"for": "web"})).metadata.resource_version or ""
    io.execute("HSET", io.keys.dispatch_position(), "pods", before)
    store.delete(PODS, "default/a")
    store.create(pod("b", labels={"for": "other"}))
    bench.lead()
    bench.start(recovers=False)
    bench.settle()
    bench.dispatcher.flush()  # would store the position of the second pod
    assert take_waiting_keys(io) == set()
    assert recover(bench.context, bench.kinds)
    bench.dispatcher.flush()
    assert take_waiting_keys(io) == {"default/web", "default/other"}
    assert not recover(bench.context, bench.kinds)


@pytest.mark.parametrize("damaged", ["rubbish", "", "9" * 5000, b"\xff"])
def test_a_damaged_position_means_from_the_first_change_on(
    bench: Bench, io: RedisIO, damaged: str | bytes
) -> None:
    store = Store(io)
    store.create(pod("a", labels={"for": "web"}))
    store.delete(PODS, "default/a")
    io.execute("HSET", io.keys.dispatch_position(), "pods", damaged)
    bench.lead()
    bench.start()
    bench.settle()
    bench.dispatcher.flush()
    assert take_waiting_keys(io) == {"default/web"}


def test_where_the_log_was_trimmed_all_persisted_keys_are_marked(bench: Bench, io: RedisIO) -> None:
    store = Store(io)
    store.create(pod("a", labels={"for": "web"}))
    io.execute("HSET", io.keys.dispatch_position(), "pods", 1)
    io.execute("HSET", io.keys.queue("recording", "failures"), "default/failing", 3)
    store.delete(PODS, "default/a")
    store.create(pod("b"))
    trim(io, [PODS], Retention(entries=0))
    bench.lead()
    bench.start()
    bench.settle()
    bench.dispatcher.flush()
    assert take_waiting_keys(io) == {"default/failing"}


def test_after_a_second_list_all_keys_of_the_kinds_controllers_are_marked(
    bench: Bench, io: RedisIO
) -> None:
    Store(io).create(replica_set("web"))
    Store(io).create(pod("a"))
    bench.lead()
    bench.start()
    bench.settle()
    bench.dispatcher.flush()
    assert take_waiting_keys(io) == {"default/web"}
    confirmed = io.execute("HGET", io.keys.dispatch_position(), "pods")
    # Pods have newer versions of which the watch log knows nothing: the informer lists again.
    io.execute("HSET", io.keys.last_rv(), "pods", 1_000)
    keys: set[str] = set()

    def enqueue() -> bool:
        bench.dispatcher.enqueue_relisted()
        bench.dispatcher.flush()
        keys.update(take_waiting_keys(io))
        return bool(keys)

    until(enqueue)
    assert keys == {"default/web"}
    assert io.execute("HGET", io.keys.dispatch_position(), "pods") == confirmed


def test_a_list_older_than_the_position_shows_that_the_data_went_back(
    bench: Bench, io: RedisIO
) -> None:
    """An etcd was restored: syncs must not wait for changes that no longer exist."""
    Store(io).create(replica_set("web"))
    bench.lead()
    bench.start()
    bench.settle()
    bench.dispatcher.flush()
    take_waiting_keys(io)
    listed = bench.context.caches.factory.position_of(SETS)
    io.execute("HSET", io.keys.dispatch_position(), SETS.name, listed + 1_000)
    sets = bench.kinds[0]
    sets.note(Change(None, replica_set("lost")), listed + 900)
    bench.dispatcher.on_relist(sets, listed)
    bench.dispatcher.enqueue_relisted()
    bench.dispatcher.flush()
    assert take_waiting_keys(io) == {"default/web", "default/lost"}
    assert io.execute("HGET", io.keys.dispatch_position(), SETS.name) == str(listed).encode()


def test_a_leader_that_was_overtaken_marks_nothing_and_forgets_nothing(
    bench: Bench, io: RedisIO
) -> None:
    bench.start()
    bench.lead()
    io.execute("HSET", io.keys.lease("dispatch:pods"), "token", "999999")
    Store(io).create(pod("a", labels={"for": "web"}))
    bench.settle()
    bench.dispatcher.flush()
    assert take_waiting_keys(io) == set()
    bench.kinds[1].lease.release()
    io.execute("DEL", io.keys.lease("dispatch:pods"))
    assert bench.kinds[1].lease.try_acquire()
    bench.dispatcher.flush()
    assert take_waiting_keys(io) == {"default/web"}


def test_a_crash_in_a_handler_is_contained_and_counted(bench: Bench, io: RedisIO) -> None:
    bench.lead()
    bench.start()
    store = Store(io)
    store.create(pod("a", labels={"crash": "yes"}))
    store.create(pod("b", labels={"for": "web"}))
    bench.settle()
    bench.dispatcher.flush()
    assert bench.crashes == ["recording-controller"]
    assert take_waiting_keys(io) == {"default/web"}


def test_marks_of_many_events_are_merged() -> None:
    from kcm.manager.dispatch import merge_additions

    additions = [Addition("a", ("x", "y")), Addition("b", ("x",)), Addition("a", ("y", "z"))]
    assert merge_additions(additions) == [Addition("a", ("x", "y", "z")), Addition("b", ("x",))]
