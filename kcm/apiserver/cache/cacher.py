"""The cacher fills the watch caches of all kinds with one reader of Redis for each process.

One blocking read serves all kinds and all watchers. While the store is unavailable, caches and
positions are kept. A kind whose position has expired is listed again. No error stops the thread.
"""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Protocol

import structlog

from kcm import errors
from kcm.api import scheme
from kcm.api.apiextensions_v1 import CustomResourceDefinition
from kcm.api.scheme import Resource
from kcm.apiextensions import known
from kcm.apimachinery.meta_v1 import KubeObject
from kcm.apiserver.cache.entries import Entry
from kcm.apiserver.cache.watch_cache import WatchCache
from kcm.apiserver.http_errors import TooLargeResourceVersion
from kcm.clock import Clock
from kcm.redisio import greenlets
from kcm.store import Store, WatchEntry, damage
from kcm.store.pace import ReadPace
from kcm.store.reader import PAGE

log = structlog.get_logger("kcm.apiserver")

BLOCK_MS = 1000  # the longest wait of one read, below the socket timeout
MERGE = 0.002  # seconds; a burst of writes costs one read, not one per write
READ_INTERVAL = 0.01  # seconds between reads once READ_BURST of them came in a row
READ_BURST = 8
FRESH_TIMEOUT = 3.0  # seconds, as upstream's blockTimeout
PAUSE = 0.5  # seconds between attempts while the store is unavailable


class EntryConverter(Protocol):
    """Makes entries ready for versions into which a webhook converts them.

    `kcm.apiserver.conversion.converter.WebhookConverter` does so, and describes the methods.
    """

    def convert_entries(self, entries: Sequence[Entry], target: Resource) -> None: ...

    async def convert_entries_soon(self, entries: Sequence[Entry], target: Resource) -> None: ...


class Cacher:
    """The watch caches of all kinds, and the thread that fills them."""

    def __init__(self, store: Store, clock: Clock | None = None) -> None:
        self._store = store
        self._clock = clock or store.clock
        # Keyed by the name of the stored resource, which its served versions share.
        self._lock = threading.Lock()
        self._caches = {resource.name: WatchCache(resource) for resource in scheme.resources()}
        self._positions: dict[str, int] = {}
        self._stop = threading.Event()
        self._hurry = threading.Event()  # set when a caller waits for fresh data
        self._pace = ReadPace(self._clock, shortest=MERGE, interval=READ_INTERVAL, burst=READ_BURST)
        self._thread: threading.Thread | None = None
        self.converter: EntryConverter | None = None  # None converts nothing by webhooks
        # whether every kind was listed that was there when the server started; kinds that are
        # defined later do not make a server that is ready unready
        self.filled = False
        # called by the thread whenever it has read changes
        self.on_changes: Callable[[], None] = lambda: None

    def cache(self, resource: Resource) -> WatchCache:
        """Returns the cache of a kind, which all of its versions share."""
        cache = self._caches.get(resource.name)
        if cache is None:  # a new custom kind; the thread will fill it
            with self._lock:
                stored = scheme.by_name(resource.name)
                cache = self._caches.setdefault(resource.name, WatchCache(stored))
        return cache

    @property
    def watcher_counts(self) -> Mapping[Resource, int]:
        """Returns the number of watchers of each kind."""
        return {cache.resource: cache.watcher_count for cache in list(self._caches.values())}

    def start(self) -> None:
        """Starts the thread that fills the caches."""
        self._thread = threading.Thread(target=self._run, name="kcm-watch-cache", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Stops the thread, which takes up to the duration of one blocking read."""
        self._stop.set()
        self._hurry.set()
        if self._thread is not None:
            self._thread.join(BLOCK_MS / 1000 + 1)

    def wait_until_fresh(self, *resources: Resource) -> int:
        """Waits until the caches have every write to these kinds from before this call.

        Returns the store's resourceVersion. It takes two reads of the store. Raises
        StoreUnavailable.
        """
        version = self._store.resource_version()
        for resource, wanted in self._store.last_rvs(resources).items():
            cache = self.cache(resource)
            if cache.position < wanted:
                self._hurry.set()
                if not greenlets.block(partial(cache.wait, wanted, FRESH_TIMEOUT)):
                    raise errors.StoreUnavailable("the watch cache did not reach the store in time")
        return version

    def wait_for_version(self, resource: Resource, version: int) -> int:
        """Waits until the cache has reached `version`, and returns a version that it has reached.

        Raises TooLargeResourceVersion if the store has not reached `version`, and StoreUnavailable.
        """
        cache = self.cache(resource)
        if 0 < version <= cache.position:
            return cache.position
        reached = self.wait_until_fresh(resource)
        if version > reached:
            raise TooLargeResourceVersion(
                f"Too large resource version: {version}, current: {reached}"
            )
        return reached

    def wait_until_filled(self, resource: Resource) -> int:
        """Waits until the kind was listed, and returns the version of the cache, however old.

        Raises StoreUnavailable.
        """
        if not greenlets.block(partial(self.cache(resource).wait, 0, FRESH_TIMEOUT)):
            raise errors.StoreUnavailable("the watch cache is not filled yet")
        return self.cache(resource).position

    def wait_until_level(self, timeout: float) -> int | None:
        """Waits until each cache has every write from before this call.

        Returns the store's resourceVersion at that time, None if a cache does not have it in
        `timeout` seconds. Raises StoreUnavailable.
        """
        caches = list(self._caches.values())
        version = self._store.resource_version()
        wanted = self._store.last_rvs([cache.resource for cache in caches])
        self._hurry.set()
        level = all(cache.wait(wanted[cache.resource], timeout) for cache in caches)
        return version if level else None

    # --- the thread

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                self.turn()
            except errors.Temporary as error:
                log.warning("The watch cache cannot read the store", error=error.message)
                self._clock.wait(self._stop, PAUSE)
            except Exception:  # if the thread stopped, no watch would get events
                log.exception("The watch cache failed and is retried")
                self._clock.wait(self._stop, PAUSE)

    def turn(self, block_ms: int = BLOCK_MS) -> None:
        """Lists the kinds that have no position, then reads changes once and applies them.

        `block_ms` is how many milliseconds the read may wait for changes.
        """
        self._follow_scheme()
        self._fill_all([c for c in self._caches.values() if c.resource.name not in self._positions])
        self.filled = self.filled or all(r.name in self._positions for r in scheme.resources())
        positions = {self._caches[name].resource: at for name, at in self._positions.items()}
        changes = self._store.read_changes(positions, block_ms)
        by_kind: dict[Resource, list[WatchEntry]] = defaultdict(list)
        for change in changes.entries:
            by_kind[change.resource].append(change)
        for resource, position in changes.positions.items():
            if resource in changes.gone:
                log.info("A kind is listed again", resource=resource.name)
                del self._positions[resource.name]
            elif resource in by_kind or position != self._positions[resource.name]:
                self._positions[resource.name] = position
                if resource.model is CustomResourceDefinition:
                    # first, so that waiters for the definition find its kind
                    _learn(by_kind[resource])
                cache = self._caches[resource.name]
                cache.apply(_readable(cache, by_kind[resource]), position)
        if changes.entries:
            self.on_changes()
        if changes.entries and not self._stop.is_set():
            self._clock.wait(self._hurry, self._pace.count_read())
            self._hurry.clear()

    def _follow_scheme(self) -> None:
        """Adds, replaces and retires caches as custom kinds are added, changed and removed."""
        with self._lock:
            present = {resource.name: resource for resource in scheme.resources()}
            for name, resource in present.items():
                if name not in self._caches:
                    self._caches[name] = WatchCache(resource)
            for name, cache in list(self._caches.items()):
                if present.get(name) is cache.resource:
                    continue
                cache.retire()
                self._positions.pop(name, None)
                del self._caches[name]
                if name in present:
                    self._caches[name] = WatchCache(present[name])

    def _fill_all(self, caches: Sequence[WatchCache]) -> None:
        """Lists the kinds of these caches: together those whose objects fit into a page, and each
        of the others by itself.
        """
        if not caches:
            return
        listed = self._store.resource_version()  # first: what comes later is in the log
        counts = self._store.count_objects([cache.resource for cache in caches])
        small: list[WatchCache] = []
        large: list[WatchCache] = []
        for cache in caches:
            (small if counts.get(cache.resource, PAGE) < PAGE else large).append(cache)
        self._fill(small, listed, {resource for resource, count in counts.items() if not count})
        for cache in large:
            self._fill([cache], self._store.resource_version())

    def _fill(
        self, caches: Sequence[WatchCache], listed: int, empty: Collection[Resource] = ()
    ) -> None:
        """Lists the kinds of these caches, but for the empty ones. `listed` is a resourceVersion
        from before anything of them was read.
        """
        objects = {
            cache.resource: {} if cache.resource in empty else self._list(cache.resource)
            for cache in caches
        }
        # Writes from while the pages were read are in the log. They are applied before watches may
        # start, so that no watcher gets a change of an object that it has already listed.
        reached = self._store.resource_version()
        positions = self._catch_up(objects, listed)
        for cache in caches:
            resource = cache.resource
            if resource.model is CustomResourceDefinition:
                known.learn_all(_definitions(objects[resource].values()))
            position = max(positions[resource], reached)
            cache.refill(objects[resource].values(), position)
            self._positions[resource.name] = position

    def _list(self, resource: Resource) -> dict[str, Entry]:
        """Returns the objects of a kind that can be read, by their keys."""
        objects: dict[str, Entry] = {}
        for page in self._store.raw_pages(resource):
            raws = dict(page)
            for obj in self._store.readable_page(resource, page):
                objects[obj.key] = _build_entry(resource, raws[obj.key], obj)
        return objects

    def _catch_up(
        self, objects: Mapping[Resource, dict[str, Entry]], listed: int
    ) -> Mapping[Resource, int]:
        """Applies the changes since `listed` to the objects, and returns the positions reached."""
        positions: Mapping[Resource, int] = dict.fromkeys(objects, listed)
        while positions:
            changes = self._store.read_changes(positions, 0)
            if changes.gone:
                raise errors.EpochChanged
            for change in changes.entries:
                if change.type == "DELETED" or damage.decode_change(change) is not None:
                    _overlay(objects[change.resource], change)
            positions = changes.positions
            if not changes.entries:
                break
        return positions


def _definitions(entries: Iterable[Entry]) -> Iterator[CustomResourceDefinition]:
    for entry in entries:
        assert isinstance(entry.obj, CustomResourceDefinition)
        yield entry.obj


def _learn(changes: Iterable[WatchEntry]) -> None:
    """Registers, changes and removes custom kinds by the changes of their definitions."""
    for change in changes:
        if change.type == "DELETED":
            known.forget(change.key)
            continue
        definition = damage.decode_change(change)
        if isinstance(definition, CustomResourceDefinition):
            known.learn(definition)


def _readable(cache: WatchCache, changes: Iterable[WatchEntry]) -> list[WatchEntry]:
    """Returns the changes that watchers can get.

    A DELETED entry that cannot be decoded is reported with the last cached state of its object.
    Another entry that cannot be decoded is left out, since the object itself may not have changed:
    any program can append to the log.
    """
    readable: list[WatchEntry] = []
    for change in changes:
        if damage.decode_change(change) is not None:
            readable.append(change)
        elif change.type == "DELETED" and (last := cache.get(change.key)) is not None:
            readable.append(replace(change, raw=last.raw))
    return readable


def _overlay(objects: dict[str, Entry], change: WatchEntry) -> None:
    present = objects.get(change.key)
    if present is not None and present.version > change.resource_version:
        return
    if change.type == "DELETED":
        objects.pop(change.key, None)
    else:
        objects[change.key] = Entry(
            change.resource, change.key, change.raw, change.resource_version
        )


def _build_entry(resource: Resource, raw: bytes, obj: KubeObject) -> Entry:
    return Entry(resource, obj.key, raw, int(obj.metadata.resource_version or 0), obj)
