"""The journal: the writes of a control plane, as its stores report them and its watch logs have
them.

A write is reported by the store that makes it, with its author, and is in the watch log of its
kind. Both are joined by the resourceVersion, whichever comes first, so that no write is missed and
none is there twice. The journal keeps the last `MAX_WRITES` writes, or fewer if their objects have
more than `MAX_BYTES`, and counts those that it dropped.
"""

from __future__ import annotations

import bisect
import json
import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from kcm.clock import Clock
from kcm.store.watch import ChangeType, WatchEntry
from kcm.store.writes.items import Encoded, WriteItem, WriteResult
from kcm.store.writes.observing import Author

MAX_WRITES = 20_000
MAX_BYTES = 64 * 1024 * 1024

ObjectKey = tuple[str, str]  # the resource's name, and the object's key

_EVENTS: dict[str, ChangeType] = {"create": "ADDED", "update": "MODIFIED", "delete": "DELETED"}


@dataclass(slots=True)
class Entry:
    """One write. Its author is None until the store reports it."""

    resource_version: int
    resource: str  # a plural name with its group, such as `pods` or `deployments.apps`
    key: str
    event: ChangeType
    time: datetime  # when it was reported, or else when it was read
    raw: bytes = field(repr=False)  # it may be a Secret
    author: Author | None = None
    part: str = ""  # the subresource through which the object was updated

    @property
    def object_key(self) -> ObjectKey:
        """The key under which the writes of its object are found."""
        return self.resource, self.key

    def load(self) -> dict[str, Any]:
        """Returns the object after the write; of a deletion, its last state."""
        loaded: dict[str, Any] = json.loads(self.raw)
        return loaded


class Journal:
    """Keeps writes. Thread-safe."""

    def __init__(
        self, clock: Clock, max_writes: int = MAX_WRITES, max_bytes: int = MAX_BYTES
    ) -> None:
        self.clock = clock
        self._max_writes = max_writes
        self._max_bytes = max_bytes
        self._lock = threading.Lock()  # protects the fields below
        self._entries: dict[int, Entry] = {}
        self._order: list[int] = []  # the resourceVersions of `_entries`, sorted
        self._by_object: dict[ObjectKey, list[int]] = {}  # resourceVersions, sorted
        self._base: dict[ObjectKey, bytes] = {}  # the last dropped state of objects
        self._bytes = 0
        self.dropped = 0  # how many writes are no longer kept
        self.dropped_to = 0  # the resourceVersion of the last of them

    # --- what comes in

    def note(
        self,
        author: Author,
        batch: Sequence[tuple[WriteItem, Encoded]],
        results: Sequence[WriteResult],
    ) -> None:
        """Takes the writes that a store has made."""
        now = self.clock.now()
        for (item, text), result in zip(batch, results, strict=True):
            if not result.ok:
                continue
            entry = Entry(
                int(result.detail),
                item.resource.name,
                item.obj.key,
                _EVENTS[item.op],
                now,
                b"".join((text.head, result.detail.encode(), text.tail, text.shared)),
                author,
                item.part,
            )
            self._put(entry)

    def read(self, entries: Iterable[WatchEntry]) -> None:
        """Takes entries of the watch logs. Those that a store has reported add nothing."""
        now = self.clock.now()
        for entry in entries:
            number, name = entry.resource_version, entry.resource.name
            self._put(Entry(number, name, entry.key, entry.type, now, entry.raw))

    def _put(self, entry: Entry) -> None:
        number = entry.resource_version
        with self._lock:
            if number <= self.dropped_to:
                return
            present = self._entries.get(number)
            if present is not None:
                if present.author is None and entry.author is not None:
                    present.author, present.part, present.time = (
                        entry.author,
                        entry.part,
                        entry.time,
                    )
                return
            self._entries[number] = entry
            _insert(self._order, number)
            _insert(self._by_object.setdefault(entry.object_key, []), number)
            self._bytes += len(entry.raw)
            if len(self._order) > self._max_writes or self._bytes > self._max_bytes:
                self._drop_oldest()

    def _drop_oldest(self) -> None:
        """Drops a tenth more than it must, since a list is slow to shorten at its beginning."""
        count = 0
        while count < len(self._order) - 1 and (
            len(self._order) - count > self._max_writes * 9 // 10
            or self._bytes > self._max_bytes * 9 // 10
        ):
            entry = self._entries.pop(self._order[count])
            count += 1
            self._bytes -= len(entry.raw)
            self.dropped_to = entry.resource_version
            own = self._by_object[entry.object_key]
            own.pop(0)
            if not own:
                del self._by_object[entry.object_key]
            if entry.event == "DELETED":
                self._base.pop(entry.object_key, None)
            else:
                self._base[entry.object_key] = entry.raw
        del self._order[:count]
        self.dropped += count

    # --- what is asked

    @property
    def newest(self) -> int:
        """The resourceVersion of the newest write, 0 if there is none."""
        with self._lock:
            return self._order[-1] if self._order else self.dropped_to

    def resources(self) -> set[str]:
        """Returns the resources of which there are writes."""
        with self._lock:
            return {resource for resource, _ in self._by_object}

    def has(self, number: int) -> bool:
        """Reports whether the write with a resourceVersion is known, or was dropped."""
        with self._lock:
            return number in self._entries or number <= self.dropped_to

    def after(self, number: int) -> list[tuple[Entry, bytes | None]]:
        """Returns the writes after a resourceVersion, in the store's order.

        Each comes with the state of its object before it, None if there was none.
        """
        with self._lock:
            start = bisect.bisect_right(self._order, number)
            entries = [self._entries[each] for each in self._order[start:]]
            return [(entry, self._before(entry)) for entry in entries]

    def of(self, key: ObjectKey) -> list[tuple[Entry, bytes | None]]:
        """Returns the writes of one object, as `after` does."""
        with self._lock:
            entries = [self._entries[number] for number in self._by_object.get(key, ())]
            return [(entry, self._before(entry)) for entry in entries]

    def current(self) -> list[tuple[str, bytes]]:
        """Returns the resource and the last state of each object that exists."""
        with self._lock:
            last = {key: self._entries[own[-1]] for key, own in self._by_object.items()}
            found = [(key[0], raw) for key, raw in self._base.items() if key not in last]
            found += [(e.resource, e.raw) for e in last.values() if e.event != "DELETED"]
        return found

    def _before(self, entry: Entry) -> bytes | None:
        own = self._by_object[entry.object_key]
        place = bisect.bisect_left(own, entry.resource_version)
        if place == 0:
            return self._base.get(entry.object_key)
        before = self._entries[own[place - 1]]
        return None if before.event == "DELETED" else before.raw


def _insert(numbers: list[int], number: int) -> None:
    """Inserts a number into a sorted list, mostly at its end."""
    if not numbers or numbers[-1] < number:
        numbers.append(number)
    else:
        bisect.insort(numbers, number)
