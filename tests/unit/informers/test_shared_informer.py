import threading

import pytest

from kcm.informers.indexer import NAMESPACE_INDEX
from tests.unit.informers.fakes import Recorder, World, read_cache


def informer_threads() -> list[str]:
    return sorted(t.name for t in threading.enumerate() if t.name.startswith("informer-pods"))


def test_without_handlers_there_is_a_cache_and_no_thread() -> None:
    world = World()
    world.source.put("a/one")
    informer = world.start_informer()
    assert read_cache(informer) == {"a/one": "1"}
    assert informer_threads() == []


def test_handlers_are_told_in_order_from_the_first_list_on() -> None:
    world = World()
    world.source.put("a/one")
    informer = world.informer()
    recorder = Recorder()
    registration = informer.add_event_handler(recorder)
    informer.start(world.multiplexer)
    assert informer_threads() == ["informer-pods-Recorder"]
    world.turn()
    world.source.put("a/two"), world.source.put("a/one"), world.source.remove("a/one")
    world.turn()
    assert recorder.wait_for(4) == [
        "add a/one initially",
        "add a/two",
        "update a/one 1->3",
        "delete a/one",
    ]
    assert registration.has_synced()
    informer.stop(10)
    assert informer_threads() == []


def test_a_late_handler_is_first_told_of_everything_cached() -> None:
    world = World()
    world.source.put("a/one"), world.source.put("a/two")
    informer = world.start_informer()
    recorder = Recorder()
    informer.add_event_handler(recorder)
    assert sorted(recorder.wait_for(2)) == ["add a/one initially", "add a/two initially"]
    world.source.put("a/one")
    world.turn()
    assert recorder.wait_for(3)[2] == "update a/one 1->3"
    informer.stop()


def test_a_removed_handler_is_told_no_more_and_others_are() -> None:
    world = World()
    informer = world.start_informer()
    removed, kept = Recorder(), Recorder()
    registration = informer.add_event_handler(removed)
    informer.add_event_handler(kept)
    informer.remove_event_handler(registration)
    world.source.put("a/one")
    world.turn()
    assert kept.wait_for(1) == ["add a/one"]
    assert removed.events == []
    informer.stop()


def test_each_handler_resyncs_by_its_own_period() -> None:
    world = World()
    world.source.put("a/one")
    informer = world.informer()
    often, rarely, never = Recorder(), Recorder(), Recorder()
    informer.add_event_handler_with_resync_period(rarely, 30)
    informer.add_event_handler_with_resync_period(often, 10)
    informer.add_event_handler(never)
    informer.start(world.multiplexer)
    world.turn()
    for _ in range(3):
        world.clock.step(10)
        world.turn()
    world.source.put("a/two")
    world.turn()  # its add follows all resyncs in every queue
    first, resync, last = "add a/one initially", "update a/one 1->1", "add a/two"
    assert often.wait_for(5) == [first, resync, resync, resync, last]
    assert rarely.wait_for(3) == [first, resync, last]
    assert never.wait_for(2) == [first, last]
    informer.stop()


@pytest.mark.parametrize(
    ("asked", "default", "started", "period"),
    [
        (0.0, 0.0, False, 0.0),
        (0.2, 0.0, False, 1.0),
        (5.0, 0.0, False, 5.0),
        (5.0, 20.0, False, 5.0),
        (30.0, 20.0, False, 30.0),
        (5.0, 20.0, True, 20.0),
        (30.0, 20.0, True, 30.0),
        (5.0, 0.0, True, 0.0),
    ],
)
def test_a_resync_period_is_settled_as_upstream(
    asked: float, default: float, started: bool, period: float
) -> None:
    world = World()
    informer = world.informer(default_resync=default)
    if started:
        informer.start(world.multiplexer)
    registration = informer.add_event_handler_with_resync_period(Recorder(), asked)
    assert registration.resync_period == period
    informer.stop()


def test_a_relist_that_changes_nothing_is_no_news_to_handlers_without_resync() -> None:
    world = World(default_resync=30.0)
    world.source.put("a/one")
    informer = world.informer()
    recorder = Recorder()
    informer.add_event_handler(recorder)
    informer.start(world.multiplexer)
    world.turn()
    world.clock.step(30)
    world.turn()
    assert recorder.wait_for(2)[1] == "update a/one 1->1"
    world.clock.step(1)
    # Ends the handlers' resync, as the next look does that finds none due.
    informer._processor.should_resync(world.clock.monotonic())
    world.source.foreign()
    world.source.trim()
    world.turn(2)
    world.source.put("a/two")
    world.turn()
    assert recorder.wait_for(3)[2] == "add a/two"
    informer.stop()


def test_the_cache_is_read_once_and_known_under_both_names() -> None:
    world = World()
    world.source.put("a/one")
    informer = world.informer()
    assert not informer.has_synced()
    informer.start(world.multiplexer)
    informer.start(world.multiplexer)
    assert informer.has_started
    world.turn()
    assert informer.has_synced()
    assert informer.last_sync_resource_version == "1"
    assert informer.get_store() is informer.get_indexer()
    informer.add_indexers({"name": lambda o: [o.name]})
    indexer = informer.get_indexer()
    assert indexer.by_index("name", "one") == indexer.by_index(NAMESPACE_INDEX, "a")
    assert len(world.source.lists) == 1


def test_what_comes_too_late_is_refused() -> None:
    world = World()
    informer = world.start_informer()
    with pytest.raises(RuntimeError, match="already started"):
        informer.set_transform(lambda o: o)
    informer.stop()
    with pytest.raises(RuntimeError, match="stopped already"):
        informer.add_event_handler(Recorder())


def test_the_detector_finds_a_handler_that_mutates() -> None:
    world = World(detect_mutations=True)
    world.source.put("a/one", colour="red"), world.source.put("a/two")
    informer = world.start_informer()
    assert informer.mutation_detector is not None
    world.source.put("a/one", colour="red"), world.source.remove("a/two")
    world.turn()
    assert informer.mutation_detector.check() == []
    informer.get_indexer().list("a")[0].metadata.labels["colour"] = "blue"  # type: ignore[index] # it has some
    found = informer.mutation_detector.check()  # the object and its predecessor share the labels
    assert {m.field for m in found} == {"metadata.labels.colour"}
