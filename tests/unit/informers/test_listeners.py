"""Tests handlers that are called in the informer's thread."""

from kcm.informers.handlers import ResourceEventHandlerFuncs
from tests.unit.informers.fakes import Recorder, World


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
