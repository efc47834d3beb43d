import threading

import pytest

from kcm.informers.delta_fifo import DeletedFinalStateUnknown, DeltaFIFO, Deltas, DeltaType
from kcm.informers.store import ThreadSafeStore

Popped = list[tuple[str, list[str], bool]]


class Bench:
    """A FIFO of texts "key=state" with a consumer; `known` is what the consumer's store holds."""

    def __init__(self, *known: str) -> None:
        self.known: ThreadSafeStore[str] = ThreadSafeStore()
        for text in known:
            self.known.put(key_of(text), text)
        self.fifo = DeltaFIFO(key_of, self.known)
        self.popped: Popped = []

    def process(self, key: str, deltas: Deltas[str], initial: bool) -> None:
        self.popped.append((key, [show(delta.type, delta.object) for delta in deltas], initial))

    def drain(self) -> Popped:
        while self.fifo.pop(self.process, block=False):
            pass
        return self.popped


def key_of(text: str) -> str:
    return text.partition("=")[0]


def show(delta_type: DeltaType, obj: str | DeletedFinalStateUnknown[str]) -> str:
    if isinstance(obj, DeletedFinalStateUnknown):
        return f"{delta_type.value} unknown {obj.obj}"
    return f"{delta_type.value} {obj}"


def test_a_key_waits_once_with_all_its_deltas_and_keys_keep_their_order() -> None:
    bench = Bench()
    bench.fifo.add("a=1")
    bench.fifo.add("b=1")
    bench.fifo.update("a=2")
    assert bench.fifo.list_keys() == ["a", "b"]
    assert len(bench.fifo.get_by_key("a")) == 2
    assert bench.drain() == [
        ("a", ["Added a=1", "Updated a=2"], False),
        ("b", ["Added b=1"], False),
    ]


def test_of_two_deletions_the_one_that_knows_more_stays() -> None:
    bench = Bench("a=1", "b=1")
    bench.fifo.delete("a=2")
    bench.fifo.replace([])  # tombstones for both
    bench.fifo.delete("b=2")
    assert bench.drain() == [
        ("a", ["Deleted a=2"], False),
        ("b", ["Deleted b=2"], False),
    ]


def test_deleting_what_nobody_knows_is_ignored() -> None:
    bench = Bench()
    bench.fifo.delete("a=1")
    assert bench.drain() == []
    assert bench.fifo.has_synced()


def test_a_relist_deletes_what_it_does_not_show() -> None:
    bench = Bench("a=1", "b=1")
    bench.fifo.add("c=1")
    bench.fifo.replace(["b=2"])
    assert sorted(bench.drain()) == [
        ("a", ["Deleted unknown a=1"], False),
        ("b", ["Replaced b=2"], False),
        ("c", ["Added c=1", "Deleted unknown c=1"], False),
    ]


def test_resync_shows_what_is_known_unless_something_newer_waits() -> None:
    bench = Bench("a=1", "b=1")
    bench.fifo.update("a=2")
    bench.fifo.resync()
    assert bench.drain() == [
        ("a", ["Updated a=2"], False),
        ("b", ["Sync b=1"], False),
    ]


def test_it_has_synced_once_the_first_list_is_popped() -> None:
    bench = Bench("gone=0")
    assert not bench.fifo.has_synced()
    bench.fifo.replace(["a=1", "b=1"])
    for _ in range(3):
        assert not bench.fifo.has_synced()
        bench.fifo.pop(bench.process)
    assert bench.fifo.has_synced()
    assert [initial for _, _, initial in bench.popped] == [True, True, True]
    bench.fifo.replace(["gone=1"])
    assert bench.fifo.has_synced()
    assert bench.drain()[3:] == [("gone", ["Replaced gone=1"], False)]


def test_an_empty_first_list_is_synced_at_once() -> None:
    bench = Bench()
    bench.fifo.replace([])
    assert bench.fifo.has_synced()


def test_what_fails_is_lost_or_goes_to_the_end_as_asked() -> None:
    def fail(key: str, deltas: Deltas[str], initial: bool) -> None:
        raise RuntimeError(key)

    bench = Bench()
    for text in ("a=1", "b=1"):
        bench.fifo.add(text)
    with pytest.raises(RuntimeError, match="a"):
        bench.fifo.pop(fail, requeue_on_error=True)
    assert bench.fifo.list_keys() == ["b", "a"]
    with pytest.raises(RuntimeError, match="b"):
        bench.fifo.pop(fail)
    assert bench.fifo.list_keys() == ["a"]


def test_a_change_passes_through_an_empty_queue_and_waits_behind_others() -> None:
    bench = Bench("a=1")
    assert bench.fifo.pass_through(DeltaType.UPDATED, "a", "a=2", bench.process)
    assert bench.popped == [("a", ["Updated a=2"], False)]
    bench.fifo.add("b=1")
    assert not bench.fifo.pass_through(DeltaType.UPDATED, "b", "b=2", bench.process)
    assert bench.drain()[1:] == [("b", ["Added b=1", "Updated b=2"], False)]


def test_a_deletion_of_the_unknown_does_not_pass_through() -> None:
    bench = Bench()
    assert bench.fifo.pass_through(DeltaType.DELETED, "a", "a=1", bench.process)
    assert bench.popped == []


def test_pop_waits_for_work_and_ends_when_closed() -> None:
    bench = Bench()
    results: list[bool] = []

    def consume() -> None:
        while True:
            results.append(bench.fifo.pop(bench.process))
            if not results[-1]:
                return

    consumer = threading.Thread(target=consume, daemon=True)
    consumer.start()
    bench.fifo.add("a=1")
    bench.fifo.close()
    consumer.join(10)
    assert results == [True, False]
    assert [key for key, _, _ in bench.popped] == ["a"]
