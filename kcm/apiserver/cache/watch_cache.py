"""The watch cache of one kind: its objects, its recent changes and its watchers.

A watcher that subscribes at a resourceVersion gets every later change once and in order, or `Gone`.
A watcher that does not keep up is disconnected and never slows down the others. The cache may be
behind the store: see `wait`.

It follows the idea of staging/src/k8s.io/apiserver/pkg/storage/cacher, Kubernetes 1.33.
"""

from __future__ import annotations

import sys
import threading
from bisect import bisect_left, bisect_right, insort
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Generic, cast

from kcm.api.scheme import Resource
from kcm.apimachinery.meta_v1 import Kind, KubeObject
from kcm.apiserver.cache.entries import CacheEvent, Entry
from kcm.apiserver.cache.history import History
from kcm.store import WatchEntry
from kcm.store.past import Past

BACKLOG = 1_000  # changes that a watcher may be behind before it is cut
_NEVER = sys.maxsize  # a version that is never reached


@dataclass(eq=False)
class CacheWatcher:
    """The events that one watch has yet to send; upstream's cacheWatcher.

    The cache appends to `pending` and calls `wake`; the watch takes events from it. A watcher gets
    no more events once it is `slow` (it has more than BACKLOG events to send, or its oldest ones
    have left the cache's history), `gone` (the kind was listed again) or
    `retired` (the kind is no longer served).
    """

    wake: Callable[[], None]
    pending: deque[CacheEvent] = field(default_factory=deque)
    position: int = 0  # once `pending` is empty, all events up to this version were sent
    slow: bool = False
    gone: bool = False
    retired: bool = False

    @property
    def oldest_version(self) -> int:
        """Returns the version of the oldest pending event, or infinity. Any thread may call it."""
        try:
            return self.pending[0].entry.version
        except IndexError:  # perhaps it was sent just now
            return _NEVER

    @property
    def ended(self) -> bool:
        return self.slow or self.gone or self.retired


class WatchCache(Generic[Kind]):
    """The objects and recent changes of one kind. One thread writes; any thread may read."""

    def __init__(self, resource: Resource[Kind], history: History | None = None) -> None:
        self.resource = resource
        self._changed = threading.Condition()
        self._objects: dict[str, Entry[Kind]] = {}
        self._keys: list[str] = []
        self._history = history or History()
        self._watchers: set[CacheWatcher] = set()
        self._indexes: dict[str, EntryIndex] = {}
        self._retired = False
        self.position = -1  # the version up to which changes are here, -1 before the first list
        self.generation = 0  # changes with every change of the objects

    # --- the writer's side

    def refill(
        self, entries: Iterable[Entry[Kind]], position: int, past: Past | None = None
    ) -> None:
        """Replaces all objects, and disconnects the watchers, whose changes may have gaps.

        `past` are the changes up to `position` that watches may begin with.
        """
        with self._changed:
            before, self._objects = self._objects, {entry.key: entry for entry in entries}
            self._keys = sorted(self._objects)
            for index in self._indexes.values():
                index.note(before.keys() | self._objects.keys())
            self._history.restart(position)
            self.position = position
            if past is not None:
                self._remember_past(past)
            self.generation += 1
            for watcher in self._watchers:
                watcher.gone = True
            self._wake(self._watchers)
            self._watchers.clear()
            self._changed.notify_all()

    def _remember_past(self, past: Past) -> None:
        """Puts the changes of `past` into the history.

        What an object was before its first change there is unknown, unless that created it.
        """
        self._history.restart(past.floor)
        states: dict[str, Entry[Kind]] = {}
        for change in past.changes:
            entry = self._objects.get(change.key)
            if entry is None or entry.version != change.resource_version:
                entry = Entry(self.resource, change.key, change.raw, change.resource_version)
            before = states.pop(change.key, None)
            if change.type != "DELETED":
                states[change.key] = entry
            knows_before = before is not None or change.type == "ADDED"
            self._history.add(CacheEvent(change.type, entry, before), knows_before=knows_before)

    def retire(self) -> None:
        """Disconnects all watchers, because the kind is no longer served or its definition
        changed.
        """
        with self._changed:
            self._retired = True
            for watcher in self._watchers:
                watcher.retired = True
            self._wake(self._watchers)
            self._watchers.clear()

    def apply(self, changes: Sequence[WatchEntry], position: int) -> None:
        """Applies changes up to `position`, and passes them on to the watchers."""
        with self._changed:
            forgotten = self._history.oldest
            events = [self._take(change) for change in changes]
            self.generation += bool(events)
            self.position = max(self.position, position)
            for watcher in list(self._watchers):
                # In this order: a watcher that reads the position and then finds nothing pending
                # has handed out everything up to it.
                lags = watcher.oldest_version <= forgotten
                watcher.pending.extend(events)
                watcher.position = self.position
                if lags or len(watcher.pending) > BACKLOG:
                    watcher.slow = True
                    watcher.pending.clear()
                    self._watchers.discard(watcher)
                    watcher.wake()
            if events:
                self._wake(self._watchers)
            self._changed.notify_all()

    def _take(self, change: WatchEntry) -> CacheEvent:
        entry = Entry(self.resource, change.key, change.raw, change.resource_version)
        before = self._objects.get(change.key)
        if change.type == "DELETED":
            if before is not None:
                del self._objects[change.key]
                del self._keys[bisect_left(self._keys, change.key)]
        else:
            self._objects[change.key] = entry
            if before is None:
                insort(self._keys, change.key)
        for index in self._indexes.values():
            index.note((change.key,))
        event = CacheEvent(change.type, entry, before)
        self._history.add(event)
        return event

    def age(self) -> None:
        """Forgets changes that are too old to begin with. It is called every AGE_EVERY seconds."""
        with self._changed:
            self._history.age(self.position)

    @staticmethod
    def _wake(watchers: Iterable[CacheWatcher]) -> None:
        for watcher in watchers:
            watcher.wake()

    # --- the readers' side

    def wait(self, version: int, timeout: float) -> bool:
        """Waits up to `timeout` seconds for the changes up to `version`.

        Returns whether the cache has them.
        """
        with self._changed:
            return self._changed.wait_for(lambda: self.position >= version, timeout)

    @property
    def count(self) -> int:
        """Returns the number of objects."""
        return len(self._objects)

    def entries(self, namespace: str = "", after: str = "") -> list[Entry[Kind]]:
        """Returns the objects whose keys follow the key `after`, sorted by key.

        An empty namespace stands for all.
        """
        with self._changed:
            return self._slice(namespace, after)

    def present(self, namespace: str = "", after: str = "") -> tuple[list[Entry[Kind]], int]:
        """Returns what `entries` returns, and the version up to which changes are in it."""
        with self._changed:
            return self._slice(namespace, after), self.position

    def snapshot(self, version: int, namespace: str = "", after: str = "") -> list[Entry[Kind]]:
        """Returns what `entries` returned when the cache was at `version`.

        Raises Gone if the history does not reach back that far.
        """
        with self._changed:
            events = self._history.list_after(version, needs_before=True)
            now = self._slice(namespace, after)
            undone: dict[str, Entry[Kind] | None] = {}
            for event in events:
                undone[event.entry.key] = cast("Entry[Kind] | None", event.before)
        if not undone:
            return now
        then = {entry.key: entry for entry in now if entry.key not in undone}
        then |= {
            key: entry
            for key, entry in undone.items()
            if entry and key > after and (not namespace or key.startswith(f"{namespace}/"))
        }
        return [then[key] for key in sorted(then)]

    def version_before(self, changes: int) -> int:
        """Returns the version that the kind had so many changes ago, at least the oldest version
        that `snapshot` knows.
        """
        with self._changed:
            return self._history.version_before(changes)

    @property
    def oldest_version(self) -> int:
        """Returns the oldest version that `snapshot` knows."""
        return self._history.whole

    def _slice(self, namespace: str, after: str) -> list[Entry[Kind]]:
        keys = self._keys
        first, last = 0, len(keys)
        if namespace:
            first = bisect_left(keys, f"{namespace}/")
            last = bisect_left(keys, f"{namespace}0")  # '0' follows '/'
        if after:
            first = max(first, bisect_right(keys, after))
        return [self._objects[key] for key in keys[first:last]]

    def index(self, name: str, value_of: Callable[[KubeObject], str]) -> EntryIndex:
        """Returns the index of this name, by the value that `value_of` returns for an object."""
        built = self._indexes.get(name)
        if built is None:
            with self._changed:
                built = EntryIndex(self.get, value_of)
                built.note(self._keys)
                built = self._indexes.setdefault(name, built)
        return built

    def get(self, key: str) -> Entry[Kind] | None:
        """Returns the entry of an object, or None."""
        return self._objects.get(key)

    def find(self, key: str) -> Kind | None:
        """Returns the object under `key`, or None."""
        entry = self._objects.get(key)
        return entry.obj if entry is not None else None

    def subscribe(
        self,
        version: int | None,
        namespace: str,
        wake: Callable[[], None],
        *,
        selects: bool = True,
    ) -> tuple[list[Entry[Kind]], CacheWatcher]:
        """Returns a watcher of the changes after `version`.

        For None it also returns the present objects of the namespace, and the watcher gets the
        changes after these. `wake` is called when events are pending or the watcher is
        disconnected. One that `selects` needs to know what objects were before their changes.
        Raises Gone if the history does not reach back to `version`.
        """
        with self._changed:
            missed: Iterable[CacheEvent] = ()
            if version is not None:
                missed = self._history.list_after(version, needs_before=selects)
            position = max(self.position, version or 0)
            watcher = CacheWatcher(wake, position=position, retired=self._retired)
            self._watchers.add(watcher)
            if version is None:
                return self._slice(namespace, ""), watcher
            watcher.pending.extendleft(missed)
            return [], watcher

    def unsubscribe(self, watcher: CacheWatcher) -> None:
        """Removes a watcher, which gets no more changes."""
        with self._changed:
            self._watchers.discard(watcher)

    @property
    def watcher_count(self) -> int:
        """Returns the number of subscribed watchers."""
        return len(self._watchers)


# --- `EntryIndex`: finds objects of a watch cache by what they say, as client-go's Indexer does.
#
# Objects are looked at, and decoded, when somebody asks, so that an index costs a change next to
# nothing.


class EntryIndex:
    """The keys of a cache's objects by a value. Threads may share it.

    The cache calls `note` after each change; everybody else calls `find`.
    """

    def __init__(
        self, get: Callable[[str], Entry | None], value_of: Callable[[KubeObject], str]
    ) -> None:
        self._get = get
        self._value_of = value_of
        self._lock = threading.Lock()  # for finders, who share the two dictionaries
        self._values: dict[str, str] = {}  # by key
        self._keys: defaultdict[str, set[str]] = defaultdict(set)  # by value
        # Keys that have changed and were not looked at again. Adding to a set and taking from it
        # are atomic, so the cache's thread never waits for one that decodes objects.
        self._pending: set[str] = set()

    def note(self, keys: Iterable[str]) -> None:
        """Remembers that objects under these keys have come, changed or gone."""
        for key in keys:
            self._pending.add(key)

    def find(self, value: str) -> list[Entry]:
        """Returns the objects with a value, sorted by key."""
        with self._lock:
            while self._pending:
                self._look_at(self._pending.pop())
            keys = sorted(self._keys.get(value, ()))
        return [entry for key in keys if (entry := self._get(key)) is not None]

    def _look_at(self, key: str) -> None:
        entry = self._get(key)
        before = self._values.pop(key, None)
        if before is not None:
            self._keys[before].discard(key)
            if not self._keys[before]:
                del self._keys[before]
        if entry is not None:
            value = self._values[key] = self._value_of(entry.obj)
            self._keys[value].add(key)
