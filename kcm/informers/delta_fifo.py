"""A queue of changes, with a list of deltas per key.

Guarantees: a key is in the queue at most once and is popped with all its deltas, oldest first. Keys
are popped in the order in which they were queued first. `process` runs under the queue's lock, so
the cache that it updates agrees with the queue. A relist queues Deleted for objects that it does
not have.

Does not guarantee the last state of an object whose deletion was found only by a relist: its
Deleted has a DeletedFinalStateUnknown.

Departure: client-go passes every event through the queue to a second thread. Here the thread that
reads also processes, so a single change may `pass_through` an empty queue, which results in the
same deltas in the same order.

Source: client-go `tools/cache/delta_fifo.go`, Kubernetes 1.33.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Generic, NamedTuple, Protocol, TypeVar

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


class DeltaType(Enum):
    """The type of a delta. Replaced comes from a list, Sync from a resync."""

    ADDED = "Added"
    UPDATED = "Updated"
    DELETED = "Deleted"
    REPLACED = "Replaced"
    SYNC = "Sync"


@dataclass(frozen=True, slots=True)
class DeletedFinalStateUnknown(Generic[T]):
    """The tombstone of an object whose deletion was missed; `obj` is its last known state."""

    key: str
    obj: T | None


class Delta(NamedTuple, Generic[T]):
    """One change, with the object after it, or for Deleted before it."""

    type: DeltaType
    object: T | DeletedFinalStateUnknown[T]


Deltas = Sequence[Delta[T]]
ProcessFunc = Callable[[str, Deltas[T], bool], None]
"""Processes a key, its deltas, and whether they belong to the first list."""


class KnownObjects(Protocol[T_co]):
    """The objects that the consumer of the queue has; from them the queue finds deletions."""

    def list_keys(self) -> Sequence[str]: ...

    def get_by_key(self, key: str) -> T_co | None: ...


class DeltaFIFO(Generic[T]):
    """The queue. After an add, update or delete it counts as populated."""

    def __init__(self, key_func: Callable[[T], str], known_objects: KnownObjects[T]) -> None:
        self._key_func = key_func
        self._known = known_objects
        self._ready = threading.Condition(threading.Lock())
        # Both have the same keys, and no list of deltas is empty.
        self._items: dict[str, list[Delta[T]]] = {}
        self._queue: deque[str] = deque()
        self._populated = False
        self._initial_population = 0
        self._closed = False

    def add(self, obj: T) -> None:
        """Queues an Added delta."""
        with self._ready:
            self._change(DeltaType.ADDED, self._key_func(obj), obj)

    def update(self, obj: T) -> None:
        """Queues an Updated delta."""
        with self._ready:
            self._change(DeltaType.UPDATED, self._key_func(obj), obj)

    def delete(self, obj: T) -> None:
        """Queues a Deleted delta, unless the object is unknown because a relist has deleted it
        already.
        """
        with self._ready:
            self._change(DeltaType.DELETED, self._key_func(obj), obj)

    def pass_through(
        self, delta_type: DeltaType, key: str, obj: T, process: ProcessFunc[T]
    ) -> bool:
        """Processes one change at once if the queue is empty; otherwise queues it and returns
        False.

        Exceptions of `process` are passed on, and the change is then not queued.
        """
        with self._ready:
            if self._queue:
                self._change(delta_type, key, obj)
                return False
            self._populated = True
            if delta_type is DeltaType.DELETED and self._known.get_by_key(key) is None:
                return True
            process(key, (Delta(delta_type, obj),), False)
            return True

    def replace(self, objects: Iterable[T]) -> None:
        """Queues Replaced for each object, and Deleted for every known object that is missing."""
        with self._ready:
            keys = set[str]()
            for obj in objects:
                key = self._key_func(obj)
                keys.add(key)
                self._enqueue(key, Delta(DeltaType.REPLACED, obj))
            deleted = self._delete_missing(keys)
            if not self._populated:
                self._populated = True
                self._initial_population = len(keys) + deleted

    def resync(self) -> None:
        """Queues Sync for every known object that has no deltas in the queue.

        A key with deltas is left out, since these are newer than the known object.
        """
        with self._ready:
            for key in self._known.list_keys():
                cached = self._known.get_by_key(key)
                if key not in self._items and cached is not None:
                    self._enqueue(key, Delta(DeltaType.SYNC, cached))

    def pop(
        self, process: ProcessFunc[T], *, block: bool = True, requeue_on_error: bool = False
    ) -> bool:
        """Takes the first key and processes its deltas.

        Returns False if the queue is closed, or empty and `block` is false. Exceptions of `process`
        are passed on; with `requeue_on_error` the deltas first go back to the end of the queue,
        unless newer ones are there.
        """
        with self._ready:
            while not self._queue:
                if self._closed or not block:
                    return False
                self._ready.wait()
            initial = self._initial_population > 0
            key = self._queue.popleft()
            deltas = self._items.pop(key)
            if initial:
                self._initial_population -= 1
            try:
                process(key, deltas, initial)
            except Exception:  # passed on, after the deltas are queued again
                if requeue_on_error:
                    self._add_if_not_present(key, deltas)
                raise
            return True

    def has_synced(self) -> bool:
        """Reports whether the first list was popped completely, or a change came before any
        list.
        """
        return self._populated and self._initial_population == 0

    def get_by_key(self, key: str) -> Deltas[T]:
        """Returns the queued deltas of `key`, oldest first."""
        with self._ready:
            return tuple(self._items.get(key, ()))

    def list_keys(self) -> list[str]:
        """Returns the queued keys, in order."""
        with self._ready:
            return list(self._queue)

    def __len__(self) -> int:
        return len(self._queue)

    def close(self) -> None:
        """Makes `pop` return False once the queue is empty."""
        with self._ready:
            self._closed = True
            self._ready.notify_all()

    def _change(self, delta_type: DeltaType, key: str, obj: T) -> None:
        self._populated = True
        unknown = key not in self._items and self._known.get_by_key(key) is None
        if delta_type is DeltaType.DELETED and unknown:
            return
        self._enqueue(key, Delta(delta_type, obj))

    def _enqueue(self, key: str, delta: Delta[T]) -> None:
        deltas = self._items.get(key)
        if deltas is None:
            self._items[key] = [delta]
            self._queue.append(key)
            self._ready.notify()
        elif delta.type is DeltaType.DELETED and deltas[-1].type is DeltaType.DELETED:
            deltas[-1] = _more_telling(deltas[-1], delta)
        else:
            deltas.append(delta)

    def _add_if_not_present(self, key: str, deltas: list[Delta[T]]) -> None:
        if key not in self._items:
            self._items[key] = deltas
            self._queue.append(key)
            self._ready.notify()

    def _delete_missing(self, listed: set[str]) -> int:
        missing = [
            (key, _last_state(deltas)) for key, deltas in self._items.items() if key not in listed
        ]
        queued = listed.union(key for key, _ in missing)
        missing += [
            (key, self._known.get_by_key(key))
            for key in self._known.list_keys()
            if key not in queued
        ]
        for key, last in missing:
            tombstone = DeletedFinalStateUnknown(key, last)
            self._enqueue(key, Delta(DeltaType.DELETED, tombstone))
        return len(missing)


def _last_state(deltas: Deltas[T]) -> T | None:
    """Returns the last known state of an object from its deltas, None if a tombstone has none."""
    newest = deltas[-1].object
    return newest.obj if isinstance(newest, DeletedFinalStateUnknown) else newest


def _more_telling(older: Delta[T], newer: Delta[T]) -> Delta[T]:
    """Returns the one of two deletions that has the object's final state."""
    return newer if isinstance(older.object, DeletedFinalStateUnknown) else older
