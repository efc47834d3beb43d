import threading
from collections.abc import Iterator
from typing import Any

import pytest

from kcm.informers.handlers import ResourceEventHandlerFuncs
from kcm.informers.processor import (
    AddNotification,
    DeleteNotification,
    ProcessorListener,
    SharedProcessor,
    UpdateNotification,
)
from tests.unit.informers.fakes import CountingObserver, Recorder, World, obj

OLD, NEW = obj("a/b", 1), obj("a/b", 2)


class Bench:
    def __init__(self) -> None:
        self.observer = CountingObserver()
        self.processor: SharedProcessor[Any] = SharedProcessor()
        self.upstream_synced = True

    def listen(self, handler: Any, queue_size: int = 8) -> ProcessorListener[Any]:
        listener: ProcessorListener[Any] = ProcessorListener(
            handler,
            kind="pods",
            queue_size=queue_size,
            upstream_has_synced=lambda: self.upstream_synced,
            observer=self.observer,
        )
        self.processor.add_listener(listener)
        return listener

    def add(self, *keys: str, initial: bool = False) -> None:
        for key in keys:
            self.processor.distribute(AddNotification(obj(key), initial), sync=False)


@pytest.fixture
def bench() -> Iterator[Bench]:
    new_bench = Bench()
    yield new_bench
    new_bench.processor.stop(10)


def stuck_until(event: threading.Event, then: Recorder) -> Any:
    def add(o: Any) -> None:
        assert event.wait(10)
        then.on_add(o, False)

    return ResourceEventHandlerFuncs(add=add)


def test_notifications_arrive_in_order_and_keep_their_kind(bench: Bench) -> None:
    recorder = Recorder()
    bench.listen(recorder)
    bench.processor.start()
    for notification in (
        AddNotification(OLD, True),
        UpdateNotification(OLD, NEW),
        DeleteNotification(NEW),
    ):
        bench.processor.distribute(notification, sync=False)
    assert recorder.wait_for(3) == ["add a/b initially", "update a/b 1->2", "delete a/b"]


def test_a_slow_handler_delays_nobody_else_and_loses_nothing(bench: Bench) -> None:
    release, slow, quick = threading.Event(), Recorder(), Recorder()
    stuck = bench.listen(stuck_until(release, slow), queue_size=2)
    bench.listen(quick)
    bench.processor.start()
    keys = [f"a/{n}" for n in range(20)]
    bench.add(*keys)
    assert quick.wait_for(20) == [f"add {key}" for key in keys]
    assert slow.events == []
    assert stuck.count_waiting() >= 17  # all but what the thread has taken
    release.set()
    assert slow.wait_for(20) == [f"add {key}" for key in keys]
    assert bench.observer.seen[0] == "overflowed pods ResourceEventHandlerFuncs"


def test_a_crash_is_counted_and_the_next_notification_comes(bench: Bench) -> None:
    recorder = Recorder()

    def add(o: Any) -> None:
        if o.key == "a/bad":
            raise RuntimeError("cannot")
        recorder.on_add(o, False)

    bench.listen(ResourceEventHandlerFuncs(add=add))
    bench.processor.start()
    bench.add("a/one", "a/bad", "a/two")
    assert recorder.wait_for(2) == ["add a/one", "add a/two"]
    assert bench.observer.seen == ["crashed pods ResourceEventHandlerFuncs cannot"]


def test_a_handler_has_synced_when_it_was_told_its_first_list(bench: Bench) -> None:
    release, recorder = threading.Event(), Recorder()
    listener = bench.listen(stuck_until(release, recorder))
    bench.upstream_synced = False
    assert not listener.has_synced()
    bench.upstream_synced = True
    bench.add("a/one", "a/two", initial=True)
    assert not listener.has_synced()
    bench.processor.start()
    release.set()
    bench.add("a/three")
    recorder.wait_for(3)  # the third's delivery follows the second's count
    assert listener.has_synced()


def test_resyncs_go_only_to_handlers_whose_period_is_over(bench: Bench) -> None:
    often, rarely, never = (bench.listen(Recorder()) for _ in range(3))
    often.set_resync_period(10, now=0)
    rarely.set_resync_period(30, now=0)

    def syncing_at(now: float) -> tuple[bool, list[bool]]:
        due = bench.processor.should_resync(now)
        return due, [listener.is_syncing for listener in (often, rarely, never)]

    assert syncing_at(9) == (False, [False, False, False])
    assert syncing_at(10) == (True, [True, False, False])
    bench.processor.distribute(UpdateNotification(OLD, OLD), sync=True)
    assert [listener.count_waiting() for listener in (often, rarely, never)] == [1, 0, 0]
    assert syncing_at(15) == (False, [False, False, False])
    assert syncing_at(30) == (True, [True, True, False])


def test_a_removed_handler_is_told_no_more(bench: Bench) -> None:
    kept, removed = Recorder(), Recorder()
    bench.listen(kept)
    listener = bench.listen(removed)
    bench.processor.start()
    bench.add("a/one")
    kept.wait_for(1)
    removed.wait_for(1)
    bench.processor.remove_listener(listener)
    bench.processor.remove_listener(listener)
    bench.add("a/two")
    kept.wait_for(2)
    listener.join(10)
    assert removed.events == ["add a/one"]


def test_a_handler_may_remove_itself(bench: Bench) -> None:
    done = threading.Event()

    def add(o: Any) -> None:
        bench.processor.remove_listener(listener)
        listener.join(10)
        done.set()

    listener = bench.listen(ResourceEventHandlerFuncs(add=add))
    bench.processor.start()
    bench.add("a/one")
    assert done.wait(10)


def test_stopping_drops_what_waits_and_ends_the_threads(bench: Bench) -> None:
    begun, release, recorder = threading.Event(), threading.Event(), Recorder()

    def add(o: Any) -> None:
        begun.set()
        assert release.wait(10)
        recorder.on_add(o, False)

    listener = bench.listen(ResourceEventHandlerFuncs(add=add))
    bench.processor.start()
    bench.add("a/one", "a/two", "a/three")
    assert begun.wait(10)
    listener.stop()
    release.set()
    bench.processor.stop(10)
    assert recorder.events == ["add a/one"]
    assert bench.processor.listeners == ()


# --- Tests handlers that are called in the informer's thread.


def test_a_direct_handler_has_been_called_when_the_turn_is_over() -> None:
    world, recorder = World(), Recorder()
    world.source.put("a/one")
    informer = world.informer()
    registration = informer.add_event_handler_with_resync_period(recorder, 0.0, direct=True)
    informer.start(world.multiplexer)
    assert not registration.has_synced()
    world.turn()
    assert registration.has_synced()
    world.source.put("a/one")
    world.source.remove("a/one")
    world.turn()
    assert recorder.events == ["add a/one initially", "update a/one 1->2", "delete a/one"]
    informer.stop()


def test_a_late_direct_handler_is_told_of_everything_cached_at_once() -> None:
    world, recorder = World(), Recorder()
    world.source.put("a/one")
    informer = world.start_informer()
    informer.add_event_handler_with_resync_period(recorder, 0.0, direct=True)
    assert recorder.events == ["add a/one initially"]


def test_a_direct_handler_sees_unchanged_objects_when_its_resync_is_due() -> None:
    world, recorder = World(), Recorder()
    world.source.put("a/one")
    informer = world.informer()
    informer.add_event_handler_with_resync_period(recorder, 30.0, direct=True)
    informer.start(world.multiplexer)
    world.turn()
    world.clock.step(30)
    world.turn()
    assert recorder.events == ["add a/one initially", "update a/one 1->1"]


def test_a_direct_handler_that_crashes_is_counted_and_gets_the_next_change() -> None:
    world = World()
    informer = world.informer()
    names: list[str] = []

    def fail_once(obj: object) -> None:
        names.append(str(obj))
        if len(names) == 1:
            raise ValueError("a bug")

    handler = ResourceEventHandlerFuncs(add=fail_once)
    informer.add_event_handler_with_resync_period(handler, 0.0, direct=True)
    informer.start(world.multiplexer)
    world.source.put("a/one")
    world.turn()
    world.source.put("a/two")
    world.turn()
    assert len(names) == 2
    assert "crashed pods ResourceEventHandlerFuncs a bug" in world.observer.seen
