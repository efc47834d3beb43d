"""Compares informers with a simple model under random writes, trims, failures and resyncs."""

from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from kcm.apimachinery.meta_v1 import KubeObject
from kcm.errors import EpochChanged, StoreUnavailable
from kcm.informers.controller import process_deltas
from kcm.informers.delta_fifo import DeletedFinalStateUnknown, DeltaFIFO, Deltas
from kcm.informers.indexer import NAMESPACE_INDEX, Indexer
from kcm.informers.processor import Notification
from tests.unit.informers.fakes import PODS, World, obj, read_cache

KEYS = st.sampled_from(["a/one", "a/two", "b/one", "b/two"])
COLOURS = st.sampled_from(["red", "blue"])


class Follower:
    """A handler that keeps the objects of its events, and records events that contradict them.

    It does not raise, because an informer would catch the error and the test would not see it.
    """

    def __init__(self) -> None:
        self.objects: dict[str, KubeObject] = {}
        self.wrong: list[str] = []

    def on_add(self, obj: KubeObject, is_in_initial_list: bool) -> None:
        self._expect(obj.key not in self.objects, f"add of {obj.key}, which is there")
        self.objects[obj.key] = obj

    def on_update(self, old: KubeObject, new: KubeObject) -> None:
        self._expect(self.objects.get(new.key) is old, f"update of {new.key} from another state")
        self._expect(version(new) >= version(old), f"{new.key} went back")
        self.objects[new.key] = new

    def on_delete(self, obj: KubeObject | DeletedFinalStateUnknown[Any]) -> None:
        self._expect(obj.key in self.objects, f"delete of {obj.key}, which is not there")
        self.objects.pop(obj.key, None)

    def _expect(self, holds: bool, wrong: str) -> None:
        if not holds:
            self.wrong.append(wrong)


def version(o: KubeObject) -> int:
    return int(o.metadata.resource_version or 0)


def colours(o: KubeObject) -> list[str]:
    return list(o.labels.values())


def check_indexes(indexer: Indexer[KubeObject]) -> None:
    for name, func in indexer.indexers.items():
        expected: dict[str, set[str]] = {}
        for o in indexer.list():
            for value in func(o):
                expected.setdefault(value, set()).add(o.key)
        values = indexer.index_values(name)
        assert {v: {o.key for o in indexer.by_index(name, v)} for v in values} == expected


class FifoMachine(RuleBasedStateMachine):
    """The FIFO and the cache alone: once all deltas are popped, the cache equals the model."""

    def __init__(self) -> None:
        super().__init__()
        self.rv = 0
        self.model: dict[str, int] = {}
        self.indexer: Indexer[KubeObject] = Indexer({"colour": colours})
        self.fifo = DeltaFIFO(lambda o: o.key, self.indexer)
        self.follower = Follower()

    def process(self, key: str, deltas: Deltas[KubeObject], initial: bool) -> None:
        process_deltas(self.follower, self.indexer, key, deltas, initial)

    @rule(key=KEYS, colour=COLOURS, says_add=st.booleans())
    def write(self, key: str, colour: str, says_add: bool) -> None:
        self.rv += 1
        self.model[key] = self.rv
        written = obj(key, self.rv, colour=colour)
        (self.fifo.add if says_add else self.fifo.update)(written)

    @rule(key=KEYS)
    def delete(self, key: str) -> None:
        self.rv += 1
        self.model.pop(key, None)
        self.fifo.delete(obj(key, self.rv))

    @rule(missed=st.sets(KEYS))
    def relist_after_missing_deletions(self, missed: set[str]) -> None:
        for key in missed:
            self.model.pop(key, None)
        self.fifo.replace([obj(key, rv) for key, rv in self.model.items()])

    @rule()
    def resync(self) -> None:
        self.fifo.resync()

    @rule()
    def pop(self) -> None:
        self.fifo.pop(self.process, block=False)

    @rule()
    def drain(self) -> None:
        while self.fifo.pop(self.process, block=False):
            pass
        assert {o.key: version(o) for o in self.indexer.list()} == self.model
        assert self.fifo.has_synced() or self.rv == 0

    @invariant()
    def each_key_waits_once_with_something(self) -> None:
        waiting = self.fifo.list_keys()
        assert len(waiting) == len(set(waiting))
        assert all(self.fifo.get_by_key(key) for key in waiting)

    @invariant()
    def cache_indexes_and_follower_agree(self) -> None:
        assert self.follower.wrong == []
        check_indexes(self.indexer)
        assert self.follower.objects == {o.key: o for o in self.indexer.list()}


class InformerMachine(RuleBasedStateMachine):
    """A whole informer: after turns without failures the cache equals the source."""

    def __init__(self) -> None:
        super().__init__()
        self.world = World(default_resync=5.0)
        self.source = self.world.source
        self.informer = self.world.informer()
        self.informer.add_indexers({"colour": colours})
        self.follower = Follower()
        listener = self.informer.add_event_handler(self.follower)
        # Delivered on the spot instead of by the listener's thread.
        listener.add = self._deliver  # type: ignore[method-assign]  # the seam of this test
        listener.start = lambda: None  # type: ignore[method-assign]  # as above
        self.informer.start(self.world.multiplexer)

    def _deliver(self, notification: Notification[KubeObject]) -> None:
        notification.deliver(self.follower)

    @rule(key=KEYS, colour=COLOURS)
    def write(self, key: str, colour: str) -> None:
        self.source.put(key, colour=colour)

    @rule(key=KEYS)
    def delete(self, key: str) -> None:
        if key in self.source.objects.get(PODS, {}):
            self.source.remove(key)

    @rule()
    def foreign_entry(self) -> None:
        self.source.foreign()

    @rule()
    def trim(self) -> None:
        self.source.trim()

    @initialize(lag=st.integers(0, 6), keys=st.lists(KEYS, max_size=6))
    def objects_before_the_first_list(self, lag: int, keys: list[str]) -> None:
        self.source.list_lag = lag
        for key in keys:
            self.source.put(key)

    @rule(lag=st.integers(0, 6))
    def a_new_epoch_with_lists_that_lag(self, lag: int) -> None:
        self.source.list_lag = lag
        self.source.read_errors = [EpochChanged()]
        self.source.list_errors = []
        self.world.clock.step(200)
        self.world.turn()
        self.world.turn()

    @rule(error=st.sampled_from([StoreUnavailable, EpochChanged, RuntimeError]))
    def read_fails(self, error: type[Exception]) -> None:
        self.source.read_errors.append(error())

    @rule(error=st.sampled_from([StoreUnavailable, EpochChanged, RuntimeError]))
    def list_fails(self, error: type[Exception]) -> None:
        self.source.list_errors.append(error())

    @rule(key=KEYS)
    def garbage_entry(self, key: str) -> None:
        self.source.inject("MODIFIED", key, b"{")

    @rule(seconds=st.sampled_from([0.5, 5.0, 200.0]))
    def time_passes(self, seconds: float) -> None:
        self.world.clock.step(seconds)

    @rule()
    def turn(self) -> None:
        self.world.turn()

    @rule()
    def calm(self) -> None:
        self.source.read_errors.clear()
        self.source.list_errors.clear()
        self.source.trim()  # garbage too
        for _ in range(4):
            self.world.clock.step(120)
            self.world.turn()
        assert read_cache(self.informer) == {
            key: o.metadata.resource_version for key, o in self.source.objects.get(PODS, {}).items()
        }
        assert self.world.progress.position_of(PODS) >= self.source.last.get(PODS, 0)

    @invariant()
    def cache_indexes_and_follower_agree(self) -> None:
        assert self.follower.wrong == []
        check_indexes(self.informer.get_indexer())
        assert self.follower.objects == {o.key: o for o in self.informer.get_store().list()}
        assert NAMESPACE_INDEX in self.informer.get_indexer().indexers

    @invariant()
    def what_is_reached_is_in_the_cache(self) -> None:
        if self.world.progress.position_of(PODS) < self.source.last.get(PODS, 0):
            return
        objects = self.source.objects.get(PODS, {})
        assert read_cache(self.informer) == {
            k: o.metadata.resource_version for k, o in objects.items()
        }


TestFifo = FifoMachine.TestCase
TestFifo.settings = settings(max_examples=50, stateful_step_count=30, deadline=None)
TestInformer = InformerMachine.TestCase
TestInformer.settings = settings(max_examples=50, stateful_step_count=40, deadline=None)
