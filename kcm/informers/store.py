"""A thread-safe map from keys to objects, with named indexes and tallies.

Guarantees: in every call all indexes and tallies agree with the objects. A write whose index or
state function raises changes nothing. A write touches only the index values that it changes. Reads
return the cached object itself. Does not guarantee that these objects are not changed by readers
(see mutation_detector). Results come in the order in which their objects were added.

Source: client-go `tools/cache/thread_safe_store.go`, Kubernetes 1.33. Upstream has no tallies.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

T = TypeVar("T")

IndexFunc = Callable[[T], Sequence[str]]

_Entry = tuple[str, Collection[str], Collection[str]]  # index, values to remove, values to add


@dataclass(frozen=True)
class Tally(Generic[T]):
    """A count of objects by their state, for each value of an index.

    Reading it takes time by the number of states, not by that of objects. `state` must depend on
    nothing but the object.
    """

    index: str
    state: Callable[[T], Hashable]


_Counted = tuple[Collection[str], Hashable]  # index values and state of an object


class ThreadSafeStore(Generic[T]):
    """Objects by key, and by the values that index functions compute from them."""

    def __init__(self, indexers: Mapping[str, IndexFunc[T]] | None = None) -> None:
        self._lock = threading.Lock()
        self._items: dict[str, T] = {}
        self._indexers: dict[str, IndexFunc[T]] = dict(indexers or {})
        # By index name and value, the keys in the order of their addition. There is no value
        # without a key.
        self._indices: dict[str, dict[str, dict[str, None]]] = {name: {} for name in self._indexers}
        # By tally and index value, the counts of states. There is no value without a count, and no
        # state with the count 0.
        self._tallies: dict[Tally[Any], dict[str, Counter[Hashable]]] = {}

    def put(self, key: str, obj: T) -> T | None:
        """Stores `obj` under `key`, and returns the object that was there before."""
        with self._lock:
            old = self._items.get(key)
            moves = self._moves(old, obj)
            recounts = self._recounts(old, obj) if self._tallies else ()
            self._items[key] = obj
            if moves:
                self._move(key, moves)
            for recount in recounts:
                _recount(*recount)
            return old

    def remove(self, key: str) -> T | None:
        """Removes `key`, and returns the object that was there."""
        with self._lock:
            old = self._items.get(key)
            if old is None:
                return None
            moves = self._moves(old, None)
            recounts = self._recounts(old, None)
            del self._items[key]
            self._move(key, moves)
            for recount in recounts:
                _recount(*recount)
            return old

    def get_by_key(self, key: str) -> T | None:
        """Returns the object under `key`, or None. It takes no lock, as one read of a dict is
        atomic.
        """
        return self._items.get(key)

    def list_all(self) -> list[T]:
        """Returns all objects."""
        with self._lock:
            return list(self._items.values())

    def list_keys(self) -> list[str]:
        """Returns all keys."""
        with self._lock:
            return list(self._items)

    def __len__(self) -> int:
        return len(self._items)

    def add_indexers(self, indexers: Mapping[str, IndexFunc[T]]) -> None:
        """Adds index functions, and indexes the stored objects with them.

        Raises: ValueError for a name that has another function.
        """
        with self._lock:
            for name, func in indexers.items():
                if self._indexers.get(name, func) is not func:
                    raise ValueError(f"indexer conflict: {name}")
            fresh = {n: f for n, f in indexers.items() if n not in self._indexers}
            built = {name: _build(func, self._items.items()) for name, func in fresh.items()}
            self._indexers.update(fresh)
            self._indices.update(built)

    @property
    def indexers(self) -> Mapping[str, IndexFunc[T]]:
        """The index functions by name."""
        with self._lock:
            return dict(self._indexers)

    def by_index(self, name: str, value: str) -> list[T]:
        """Returns the objects with this index value. Raises: KeyError for an unknown index.

        It takes no lock to find none, as one read of a dict is atomic.
        """
        index = self._index(name)
        if value not in index:
            return []
        with self._lock:
            items = self._items
            return [items[key] for key in index.get(value, ())]

    def add_tally(self, tally: Tally[T]) -> None:
        """Counts the states of a tally from now on, including those of the stored objects.

        Raises: KeyError if its index is unknown.
        """
        with self._lock:
            if tally in self._tallies:
                return
            index_func = self._indexers[tally.index]
            counts: dict[str, Counter[Hashable]] = {}
            for obj in self._items.values():
                _recount(counts, None, (index_func(obj), tally.state(obj)))
            self._tallies[tally] = counts

    def tally(self, tally: Tally[T], value: str) -> Mapping[Hashable, int]:
        """Returns the number of objects in each state, of those under `value` in the tally's index.

        Raises: KeyError for a tally that was not added.
        """
        with self._lock:
            return dict(self._tallies[tally].get(value, {}))

    def index_values(self, name: str) -> list[str]:
        """Returns all values that any object has in the index (upstream's ListIndexFuncValues)."""
        with self._lock:
            return list(self._index(name))

    def _index(self, name: str) -> dict[str, dict[str, None]]:
        try:
            return self._indices[name]
        except KeyError:
            raise KeyError(f"index with name {name} does not exist") from None

    def _moves(self, old: T | None, new: T | None) -> list[_Entry]:
        """Returns the changes of the indexes by a write. They are computed before anything is
        written.
        """
        moves: list[_Entry] = []
        for name, func in self._indexers.items():
            before = func(old) if old is not None else ()
            after = func(new) if new is not None else ()
            if before != after:
                moves.append((name, _without(before, after), _without(after, before)))
        return moves

    def _recounts(
        self, old: T | None, new: T | None
    ) -> Sequence[tuple[dict[str, Counter[Hashable]], _Counted | None, _Counted | None]]:
        """Returns the changes of the tallies by a write. They are computed before anything is
        written.
        """
        recounts = []
        for tally, counts in self._tallies.items():
            func = self._indexers[tally.index]
            before = (func(old), tally.state(old)) if old is not None else None
            after = (func(new), tally.state(new)) if new is not None else None
            if before != after:
                recounts.append((counts, before, after))
        return recounts

    def _move(self, key: str, moves: Iterable[_Entry]) -> None:
        for name, leave, join in moves:
            index = self._indices[name]
            for value in leave:
                keys = index[value]
                keys.pop(key, None)
                if not keys:
                    del index[value]
            for value in join:
                index.setdefault(value, {})[key] = None


def _without(values: Sequence[str], others: Sequence[str]) -> Collection[str]:
    """Returns the values that are not among the others, each once and in order."""
    excluded = set(others)
    return [value for value in dict.fromkeys(values) if value not in excluded]


def _recount(
    counts: dict[str, Counter[Hashable]], before: _Counted | None, after: _Counted | None
) -> None:
    for value in after[0] if after else ():
        counts.setdefault(value, Counter())[after[1]] += 1  # type: ignore[index] # it is not None
    for value in before[0] if before else ():
        states, state = counts[value], before[1]  # type: ignore[index] # it is not None
        states[state] -= 1
        if not states[state]:
            del states[state]
        if not states:
            del counts[value]


def _build(func: IndexFunc[T], items: Iterable[tuple[str, T]]) -> dict[str, dict[str, None]]:
    index: dict[str, dict[str, None]] = {}
    for key, obj in items:
        for value in func(obj):
            index.setdefault(value, {})[key] = None
    return index
