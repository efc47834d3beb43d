from itertools import pairwise
from typing import NoReturn

from kcm.api import codec
from kcm.apimachinery.meta_v1 import KubeObject
from kcm.errors import Forbidden
from tests.unit.informers.fakes import PODS, Recorder, World, read_cache


def test_it_lists_then_watches() -> None:
    world = World()
    world.source.put("a/one")
    informer = world.start_informer()
    assert read_cache(informer) == {"a/one": "1"}
    world.source.put("a/two")
    world.source.put("a/one")
    world.source.remove("a/two")
    world.turn()
    assert read_cache(informer) == {"a/one": "3"}
    assert world.source.lists == [PODS]
    assert informer.last_sync_resource_version == "4"
    assert world.observer.seen == ["listed pods 1", "watched pods 3"]


def test_before_the_first_list_there_is_no_version() -> None:
    informer = World().informer()
    assert informer.last_sync_resource_version == ""
    assert not informer.has_synced()


def test_a_410_lists_again_at_once_and_deletes_what_is_missing() -> None:
    world = World()
    world.source.put("a/one"), world.source.put("a/two")
    informer = world.start_informer()
    recorder = Recorder()
    informer.add_event_handler(recorder)
    world.source.remove("a/one")
    world.source.trim()
    world.turn()
    assert read_cache(informer) == {"a/one": "1", "a/two": "2"}
    world.turn()
    assert read_cache(informer) == {"a/two": "2"}
    assert sorted(recorder.wait_for(4)[2:]) == ["delete a/one unknown", "update a/two 2->2"]
    informer.stop()


def test_a_second_list_keeps_the_cached_objects_that_have_not_changed() -> None:
    world = World()
    world.source.put("a/one"), world.source.put("a/two")
    informer = world.start_informer()
    before = {obj.key: obj for obj in informer.get_indexer().list()}
    world.source.put("a/two")
    world.source.trim()
    world.turn()  # gone
    world.turn()  # lists
    after = {obj.key: obj for obj in informer.get_indexer().list()}
    assert after["a/one"] is before["a/one"]
    assert after["a/two"].metadata.resource_version == "3"
    informer.stop()


def test_every_list_but_the_first_calls_the_relist_handlers() -> None:
    world = World()
    world.source.put("a/one")
    informer = world.informer()
    relisted_at: list[int] = []
    informer.add_relist_handler(relisted_at.append)
    informer.start(world.multiplexer)
    world.turn()
    assert (read_cache(informer), relisted_at) == ({"a/one": "1"}, [])
    world.source.put("a/short-lived"), world.source.remove("a/short-lived")
    world.source.trim()
    world.turn()  # gone
    assert relisted_at == []
    world.turn()  # lists
    assert relisted_at == [3]
    informer.stop()


def test_repeated_410s_back_off() -> None:
    world = World()
    world.source.put("a/one")
    world.start_informer()
    for _ in range(2):
        world.source.put("a/one")
        world.source.trim()
        world.turn()  # gone
        world.turn()  # lists, the first time; pauses, the second
    assert len(world.source.lists) == 2
    assert world.clock.monotonic() >= 0.1
    world.turn()
    assert len(world.source.lists) == 3


def test_a_failed_list_backs_off_doubling() -> None:
    world = World(list_backoff_jitter=0.0, block_ms=4000)
    world.source.list_errors = [RuntimeError("no")] * 3
    informer = world.informer()
    informer.start(world.multiplexer)
    times: list[float] = []
    while not informer.has_synced():
        before = len(world.source.lists)
        now = world.clock.monotonic()
        world.turn()
        if len(world.source.lists) > before:
            times.append(round(now, 3))
    assert times == [0.0, 0.1, 0.3, 0.7]
    assert world.observer.seen[:3] == ["failed pods list"] * 3


def test_a_list_that_is_refused_waits_longer_each_time() -> None:
    world = World(list_backoff_jitter=0.0, block_ms=30_000)
    refusal = Forbidden("pods is forbidden")
    world.source.list_errors = [refusal] * 1100
    informer = world.informer()
    informer.start(world.multiplexer)
    times: list[float] = []
    while not informer.has_synced():
        before, now = len(world.source.lists), world.clock.monotonic()
        world.turn()
        if len(world.source.lists) > before:
            times.append(round(now, 3))
            assert informer.refusal == ("" if informer.has_synced() else "pods is forbidden")
    waits = [after - before for before, after in pairwise(times)]
    assert waits[:6] == [0.5, 1.0, 2.0, 4.0, 8.0, 16.0]
    assert set(waits[6:]) == {30.0}


def test_an_entry_that_cannot_be_read_changes_nothing() -> None:
    world = World()
    world.source.put("a/one")
    informer = world.start_informer()
    world.source.inject("MODIFIED", "a/one", b'{"kind": "Pod", "metadata": 7}')
    world.turn()
    assert "failed pods watch" in world.observer.seen
    assert read_cache(informer) == {"a/one": "1"}
    assert world.progress.position_of(PODS) == 2


def test_objects_never_go_back_to_before_the_list() -> None:
    world = World()
    world.source.put("a/one"), world.source.put("a/gone")
    world.source.remove("a/gone"), world.source.put("a/gone")
    world.source.put("a/one")
    world.source.list_lag = 5  # the list says 0 and shows what 5 made
    informer = world.informer()
    recorder = Recorder()
    informer.add_event_handler(recorder)
    informer.start(world.multiplexer)
    world.turn()
    assert sorted(recorder.wait_for(2)) == ["add a/gone initially", "add a/one initially"]
    world.source.put("a/one")
    world.turn()
    assert recorder.wait_for(3)[2:] == ["update a/one 5->6"]
    assert read_cache(informer) == {"a/one": "6", "a/gone": "4"}
    informer.stop()


def test_a_bookmark_only_moves_the_position() -> None:
    world = World()
    informer = world.start_informer()
    world.source.inject("BOOKMARK", "", b"")
    world.turn()
    assert read_cache(informer) == {}
    assert informer.last_sync_resource_version == "1"


def test_a_transform_sees_listed_and_watched_objects() -> None:
    world = World()
    world.source.put("a/one", colour="red")
    informer = world.informer()

    def drop_labels(obj: KubeObject) -> KubeObject:
        return obj.with_metadata(labels=None)

    informer.set_transform(drop_labels)
    informer.start(world.multiplexer)
    world.turn()
    world.source.put("a/two", colour="red")
    world.turn()
    assert [codec.to_dict(o)["metadata"].get("labels") for o in informer.get_store().list()] == [
        None,
        None,
    ]


def test_a_failed_resync_lists_again() -> None:
    world = World(default_resync=30.0)
    world.source.put("a/one")
    informer = world.start_informer()
    informer.add_event_handler(Recorder())

    def fail(obj: KubeObject) -> NoReturn:
        raise RuntimeError("index")

    # `add_indexers` would call it at once and fail here.
    informer.get_indexer()._indexers["bad"] = fail
    world.clock.step(30)
    world.turn()
    assert world.observer.seen[-1] == "failed pods resync"
    del informer.get_indexer()._indexers["bad"]
    world.turn(3)
    assert world.progress.position_of(PODS) == 1
    informer.stop()
