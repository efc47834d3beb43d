"""A watch as the Kubernetes API has it: one kind, selectors, bookmarks.

Guarantees: every change after the resourceVersion comes once and in order; an object that begins to
match a selector comes as ADDED, one that stops matching as DELETED; a BOOKMARK tells how far the
watch has come, so that a client that reconnects need not list. A watch may end with `Gone`; then
the client must list again.

Source: staging/src/k8s.io/apiserver/pkg/storage/cacher/cache_watcher.go, Kubernetes 1.33.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from kcm import errors
from kcm.api.scheme import Resource
from kcm.apiextensions.field_selectors import FieldSelector
from kcm.apimachinery.labels import Selector
from kcm.apimachinery.meta_v1 import KubeObject, ObjectMeta
from kcm.clock import Clock, RealClock
from kcm.store import damage
from kcm.store.store import Store
from kcm.store.watch import ChangeType, WatchEntry

BOOKMARK_EVERY = 60.0  # seconds, as upstream's defaultBookmarkFrequency
_BLOCK_MS = 1000  # longest wait of one read; below the socket timeout


@dataclass(frozen=True)
class WatchEvent:
    """One event of a watch. The object of a BOOKMARK has a resourceVersion and nothing else."""

    type: ChangeType
    object: KubeObject


class Watcher:
    """One client's watch of one kind."""

    def __init__(
        self,
        store: Store,
        resource: Resource,
        resource_version: int,
        *,
        namespace: str | None = None,
        label_selector: Selector | None = None,
        field_selector: FieldSelector | None = None,
        known: Iterable[str] = (),
        bookmark_every: float = BOOKMARK_EVERY,
        clock: Clock | None = None,
    ) -> None:
        """Watches from `resource_version` on. `known` are the keys that matched in the
        list before.
        """
        self._store = store
        self._resource = resource
        self._position = resource_version
        self._namespace = namespace
        self._labels = label_selector
        self._fields = field_selector
        self._matching = set(known)
        self._bookmark_every = bookmark_every
        self._clock = clock or RealClock()
        self._marked = self._clock.monotonic()

    def events(self, stop: threading.Event, block_ms: int = _BLOCK_MS) -> Iterator[WatchEvent]:
        """Yields events until `stop` is set. Raises: Gone, StoreUnavailable."""
        while not stop.is_set():
            yield from self.step(block_ms)

    def step(self, block_ms: int) -> list[WatchEvent]:
        """Returns the events that came within `block_ms`, and a bookmark if one is due."""
        changes = self._store.read_changes({self._resource: self._position}, block_ms)
        if self._resource in changes.gone:
            raise errors.Gone(f"too old resource version: {self._position}")
        self._position = changes.positions[self._resource]
        events = [event for change in changes.entries if (event := self._event(change))]
        now = self._clock.monotonic()
        if now - self._marked >= self._bookmark_every:
            self._marked = now
            events.append(WatchEvent("BOOKMARK", self._bookmark()))
        return events

    def _event(self, change: WatchEntry) -> WatchEvent | None:
        """Returns the event that a watch entry is to this client, or None."""
        if self._namespace is not None and not change.key.startswith(f"{self._namespace}/"):
            return None
        obj = damage.decode_change(change)
        if obj is None:
            return None
        before = change.key in self._matching
        if change.type != "DELETED" and self._selects(obj):
            self._matching.add(change.key)
            return WatchEvent("MODIFIED" if before else "ADDED", obj)
        self._matching.discard(change.key)
        if before or (change.type == "DELETED" and self._selects(obj)):
            return WatchEvent("DELETED", obj)
        return None

    def _selects(self, obj: KubeObject) -> bool:
        if self._labels is not None and not self._labels.matches(obj.metadata.labels):
            return False
        return self._fields is None or self._fields.matches(obj, self._resource)

    def _bookmark(self) -> KubeObject:
        return self._resource.model(
            api_version=self._resource.api_version,
            kind=self._resource.kind,
            metadata=ObjectMeta(resource_version=str(self._position)),
        )
