"""`EntryIndex`: finds objects of a watch cache by what they say, as client-go's Indexer does.

Objects are looked at, and decoded, when somebody asks, so that an index costs a change next to
nothing.
"""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Callable, Iterable

from kcm.apimachinery.meta_v1 import KubeObject
from kcm.apiserver.cache.entries import Entry


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
