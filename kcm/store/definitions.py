"""Learning custom kinds from the store, in processes that have no cache of definitions.

Guarantees: after `refresh` this process knows the custom kinds as the store had them
when it was called; when no definition was written since the last call, it costs one
small read. A kind whose definition is gone is forgotten some seconds later, when what
its last objects left behind has been dealt with.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence

from kcm.api import scheme
from kcm.api.apiextensions_v1 import CustomResourceDefinition
from kcm.api.custom import known
from kcm.api.custom.kinds import is_served
from kcm.api.meta_v1 import KubeObject
from kcm.clock import Clock, RealClock
from kcm.store.store import Store

LINGER = 10.0  # seconds until a kind that is gone is forgotten


class Definitions:
    """The custom kinds of one store. Any thread may refresh them."""

    def __init__(self, store: Store, clock: Clock | None = None) -> None:
        self._store = store
        self._clock = clock or RealClock()
        self._lock = threading.Lock()
        self._seen = -1
        self._gone: dict[str, float] = {}  # when each was missed first

    def refresh(self) -> None:
        """Learn kinds as the definitions in the store say. Raises StoreUnavailable."""
        resource = scheme.resource_of(CustomResourceDefinition)
        # Read before the list: what is written in between is then seen again.
        newest = self._store.last_rvs([resource])[resource]
        with self._lock:
            if newest != self._seen:
                self._learn(self._store.list(resource).items)
                self._seen = newest
            self._forget()

    def _learn(self, found: Sequence[KubeObject]) -> None:
        now = self._clock.monotonic()
        present = set()
        for definition in found:
            assert isinstance(definition, CustomResourceDefinition)
            present.add(definition.name)
            known.learn(definition)
        missing = known.names() - present
        for definition in found:
            assert isinstance(definition, CustomResourceDefinition)
            if is_served(definition) and definition.name not in known.names():
                # Its kind may still be held by a definition that is gone.
                for name in missing:
                    known.forget(name)
                missing = frozenset()
                known.learn(definition)
        self._gone = {name: self._gone.get(name, now) for name in missing}

    def _forget(self) -> None:
        now = self._clock.monotonic()
        for name in [name for name, since in self._gone.items() if now - since >= LINGER]:
            known.forget(name)
            del self._gone[name]
            self._store.drop_log(name)
