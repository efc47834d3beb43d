import pytest

from kcm.apimachinery.meta_v1 import KubeObject
from kcm.informers.controller import process_deltas
from kcm.informers.delta_fifo import DeletedFinalStateUnknown, Delta, DeltaType
from kcm.informers.indexer import Indexer
from tests.unit.informers.fakes import Recorder, World, obj


@pytest.mark.parametrize(
    ("delta_type", "known", "reported"),
    [
        (DeltaType.ADDED, False, "add a/b initially"),
        (DeltaType.UPDATED, False, "add a/b initially"),
        (DeltaType.REPLACED, False, "add a/b initially"),
        (DeltaType.SYNC, False, "add a/b initially"),
        (DeltaType.ADDED, True, "update a/b 1->2"),
        (DeltaType.UPDATED, True, "update a/b 1->2"),
        (DeltaType.REPLACED, True, "update a/b 1->2"),
        (DeltaType.SYNC, True, "update a/b 1->2"),
        (DeltaType.DELETED, True, "delete a/b"),
    ],
)
def test_what_is_reported_follows_from_the_cache(
    delta_type: DeltaType, known: bool, reported: str
) -> None:
    indexer: Indexer[KubeObject] = Indexer()
    if known:
        indexer.put("a/b", obj("a/b", 1))
    recorder = Recorder()
    process_deltas(recorder, indexer, "a/b", [Delta(delta_type, obj("a/b", 2))], True)
    assert recorder.events == [reported]
    assert (indexer.get_by_key("a/b") is None) == (delta_type is DeltaType.DELETED)


def test_a_tombstone_reaches_the_handler_as_one() -> None:
    indexer: Indexer[KubeObject] = Indexer()
    indexer.put("a/b", obj("a/b", 1))
    recorder = Recorder()
    tombstone = DeletedFinalStateUnknown("a/b", obj("a/b", 1))
    process_deltas(recorder, indexer, "a/b", [Delta(DeltaType.DELETED, tombstone)], False)
    assert recorder.events == ["delete a/b unknown"]
    assert len(indexer) == 0


@pytest.mark.parametrize("retry_on_error", [False, True])
def test_one_object_that_fails_does_not_keep_back_the_others(retry_on_error: bool) -> None:
    world = World()
    for key in ("a/one", "a/bad", "a/two"):
        world.source.put(key)
    informer = world.informer(retry_on_error=retry_on_error)

    def refuse_bad(o: KubeObject) -> tuple[str, ...]:
        if o.name == "bad" and world.clock.monotonic() == 0:
            raise RuntimeError("bad")
        return ()

    informer.add_indexers({"picky": refuse_bad})
    informer.start(world.multiplexer)
    world.turn()
    assert sorted(informer.get_store().list_keys()) == ["a/one", "a/two"]
    assert world.observer.seen == ["failed pods list"]
    world.turn(2)
    assert sorted(informer.get_store().list_keys()) == ["a/bad", "a/one", "a/two"]
