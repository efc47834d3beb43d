"""Loads custom kinds into a store's scheme, in processes that have no cache of definitions.

Guarantees: after `refresh` the scheme has the custom kinds that the store had when it was called.
If no definition was written since the last call, that costs one small read; otherwise the changed
definitions are read. A kind whose definition is gone is forgotten some seconds later, when its last
objects have been handled.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence

from kcm.api import codec
from kcm.api.apiextensions_v1 import CustomResourceDefinition
from kcm.apiextensions.kinds import is_served
from kcm.apiextensions.registration import custom_names, register, unregister
from kcm.clock import Clock
from kcm.store.store import Store
from kcm.store.watch import WatchEntry

LINGER = 10.0  # seconds until a kind without a definition is forgotten


class Definitions:
    """Keeps the custom kinds of a store's scheme equal to its definitions. Thread-safe."""

    def __init__(self, store: Store, clock: Clock | None = None) -> None:
        self._store = store
        self._scheme = store.scheme
        self._clock = clock or store.clock
        self._lock = threading.Lock()
        self._resource = CustomResourceDefinition.resource
        self._seen = -1
        self._present: set[str] = set()  # the names of the definitions in the store
        self._gone: dict[str, float] = {}  # by name, the time when it was first missing

    def refresh(self) -> None:
        """Loads the kinds of the definitions in the store. Raises: StoreUnavailable."""
        # Read before the definitions, so that the next call sees what is written in between.
        newest = self._store.last_rvs([self._resource])[self._resource]
        with self._lock:
            if newest != self._seen:
                if not self._catch_up(newest):
                    self._learn_all()
                self._seen = newest
            self._forget()

    def _catch_up(self, newest: int) -> bool:
        """Loads the definitions that were written since the last call.

        Returns False if the watch log does not have all of these changes.
        """
        if not 0 <= self._seen < newest:
            return False
        position, written = self._seen, dict[str, WatchEntry]()
        while position < newest:
            changes = self._store.read_changes({self._resource: position}, 0)
            if changes.gone or not changes.entries:
                return False
            written |= {change.key: change for change in changes.entries}
            position = changes.positions[self._resource]
        there = [change for change in written.values() if change.type != "DELETED"]
        self._present -= written.keys()
        self._learn([codec.decode_stored(change.raw, self._resource) for change in there])
        return True

    def _learn_all(self) -> None:
        self._present.clear()
        self._learn(self._store.list(self._resource).items)

    def _learn(self, written: Sequence[CustomResourceDefinition]) -> None:
        """Loads definitions, and records which registered kinds have none any more."""
        now = self._clock.monotonic()
        self._present.update(definition.name for definition in written)
        for definition in written:
            register(self._scheme, definition)
        missing = custom_names(self._scheme) - self._present
        for definition in written:
            if is_served(definition) and not self._scheme.versions(definition.name):
                # Its kind may still be registered by a definition that is gone.
                for name in missing:
                    unregister(self._scheme, name)
                missing = frozenset()
                register(self._scheme, definition)
        self._gone = {name: self._gone.get(name, now) for name in missing}

    def _forget(self) -> None:
        """Forgets the kinds whose definitions have been gone long enough."""
        now = self._clock.monotonic()
        for name in [name for name, since in self._gone.items() if now - since >= LINGER]:
            unregister(self._scheme, name)
            del self._gone[name]
            self._store.drop_log(name)
