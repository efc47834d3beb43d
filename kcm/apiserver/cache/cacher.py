"""The cacher fills the watch caches of all kinds with one reader of Redis for each process.

One blocking read serves all kinds and all watchers. While the store is unavailable, caches and
positions are kept.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import Protocol, cast

import structlog

from kcm import errors
from kcm.api.apiextensions_v1 import CustomResourceDefinition
from kcm.api.scheme import Resource
from kcm.apiextensions.registration import register, register_all, unregister
from kcm.apimachinery.meta_v1 import Kind, KubeObject
from kcm.apiserver.cache.entries import Entry, renew_json
from kcm.apiserver.cache.history import AGE_EVERY, HISTORY, HISTORY_BYTES
from kcm.apiserver.cache.recent_writes import RecentWrites
from kcm.apiserver.cache.watch_cache import WatchCache
from kcm.apiserver.http_errors import TooLargeResourceVersion
from kcm.clock import Clock
from kcm.informers.follower import Follower
from kcm.loops import Loop, Turn
from kcm.loops.pace import ReadPace
from kcm.redisio import greenlets
from kcm.store import Store, WatchEntry, damage
from kcm.store.past import read_past
from kcm.store.reader import PAGE

log = structlog.get_logger("kcm.apiserver")

MERGE = 0.002  # seconds; a burst of writes costs one read, not one per write
READ_INTERVAL = 0.01  # seconds between reads once READ_BURST of them came in a row
READ_BURST = 8
FRESH_TIMEOUT = 3.0  # seconds, as upstream's blockTimeout


class EntryConverter(Protocol):
    """Makes entries ready for versions into which a webhook converts them.

    `kcm.apiserver.egress.conversion.converter.WebhookConverter` does so, and describes the methods.
    """

    def convert_entries(self, entries: Sequence[Entry], target: Resource) -> None: ...

    async def convert_entries_soon(self, entries: Sequence[Entry], target: Resource) -> None: ...


class Cacher(Loop):
    """The watch caches of all kinds, and the loop that fills them."""

    reads = True

    def __init__(
        self, store: Store, clock: Clock | None = None, recent: RecentWrites | None = None
    ) -> None:
        """`recent` is told what this process writes."""
        super().__init__("kcm-watch-cache")
        self._store = store
        self.scheme = store.scheme
        self._clock = clock or store.clock
        # Keyed by the name of the stored resource, which its served versions share.
        self._lock = threading.Lock()
        self._caches = {resource.name: WatchCache(resource) for resource in self.scheme.resources()}
        self._recent = recent or RecentWrites()
        self._follower = Follower(store, self)
        self._followed: Sequence[Resource] = ()
        self._pace = ReadPace(self._clock, shortest=MERGE, interval=READ_INTERVAL, burst=READ_BURST)
        self.converter: EntryConverter | None = None  # None converts nothing by webhooks
        self._filled = threading.Event()
        self._unlisted: dict[Resource, str] = {}  # the error of each kind that cannot be listed
        self._ages_at = self._clock.monotonic() + AGE_EVERY
        # called in the loop whenever it has read changes
        self.on_changes: Callable[[], None] = lambda: None

    @property
    def filled(self) -> bool:
        """Whether every kind was listed that was there when the server started, if it can be. Kinds
        that are defined later do not make a server that is ready unready.
        """
        return self._filled.is_set()

    def wait_filled(self, timeout: float) -> bool:
        """Waits for up to `timeout` seconds until it is `filled`, and reports whether it is."""
        return self._filled.wait(timeout)

    def cache(self, resource: Resource[Kind]) -> WatchCache[Kind]:
        """Returns the cache of a kind, which all of its versions share."""
        cache = self._caches.get(resource.name)
        if cache is None:  # a new custom kind, which the next turn fills
            with self._lock:
                stored = self.scheme.by_name(resource.name)
                cache = self._caches.setdefault(resource.name, WatchCache(stored))
        return cast("WatchCache[Kind]", cache)  # that of this name

    @property
    def watcher_counts(self) -> Mapping[Resource, int]:
        """Returns the number of watchers of each kind."""
        return {cache.resource: cache.watcher_count for cache in list(self._caches.values())}

    def now(self) -> datetime:
        """Returns the time."""
        return self._clock.now()

    def wait_until_fresh(self, *resources: Resource) -> int:
        """Waits until the caches have every write to these kinds from before this call.

        Returns the store's resourceVersion. It takes two reads of the store. Raises
        StoreUnavailable.
        """
        version = self._store.resource_version()
        for resource, wanted in self._store.last_rvs(resources).items():
            cache = self.cache(resource)
            if cache.position < wanted:
                self.wake()
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
                f"Timeout: Too large resource version: {version}, current: {reached}"
            )
        return reached

    def wait_until_filled(self, resource: Resource) -> int:
        """Waits until the kind was listed, and returns the version of the cache, however old.

        Raises StoreUnavailable.
        """
        if not greenlets.block(partial(self.cache(resource).wait, 0, FRESH_TIMEOUT)):
            why = self._unlisted.get(resource, "the watch cache is not filled yet")
            raise errors.StoreUnavailable(why)
        return self.cache(resource).position

    def wait_until_level(self, timeout: float) -> int | None:
        """Waits until each cache has every write from before this call.

        Returns the store's resourceVersion at that time, None if a cache does not have it in
        `timeout` seconds. Raises StoreUnavailable.
        """
        caches = list(self._caches.values())
        version = self._store.resource_version()
        wanted = self._store.last_rvs([cache.resource for cache in caches])
        self.wake()
        level = all(cache.wait(wanted[cache.resource], timeout) for cache in caches)
        return version if level else None

    # --- the loop

    def turn(self, patience: float) -> Turn:
        """Lists the kinds that have to be listed, then reads changes once and applies them."""
        self._follow_scheme()
        count = self._follower.read(patience if self.filled else 0.0)
        self._filled.set()
        self._age()
        if not count:
            return Turn()
        self.on_changes()
        return Turn(worked=True, rest=self._pace.count_read())

    def _age(self) -> None:
        """Makes the caches forget old changes if the last time is AGE_EVERY seconds ago."""
        now = self._clock.monotonic()
        if now >= self._ages_at:
            self._ages_at = now + AGE_EVERY
            for cache in list(self._caches.values()):  # requests may add one meanwhile
                cache.age()

    def apply_changes(
        self, kind: Resource, changes: Sequence[WatchEntry], resource_version: int
    ) -> None:
        """Applies the changes of one kind; see `ChangeTarget`."""
        if kind.model is CustomResourceDefinition:
            self._register(changes)  # first, so that waiters for the definition find its kind
        cache = self._caches[kind.name]
        cache.apply(_readable(cache, changes, self._recent), resource_version)

    def _register(self, changes: Iterable[WatchEntry]) -> None:
        """Registers, changes and removes custom kinds by the changes of their definitions."""
        for change in changes:
            if change.type == "DELETED":
                unregister(self.scheme, change.key)
                continue
            definition = damage.decode_change(change)
            if isinstance(definition, CustomResourceDefinition):
                register(self.scheme, definition)

    def _follow_scheme(self) -> None:
        """Adds, replaces and retires caches as custom kinds are added, changed and removed."""
        resources = self.scheme.resources()
        if resources is self._followed:
            return
        self._followed = resources
        with self._lock:
            present = {resource.name: resource for resource in resources}
            for name, resource in present.items():
                if name not in self._caches:
                    self._caches[name] = WatchCache(resource)
            for name, cache in list(self._caches.items()):
                if present.get(name) is cache.resource:
                    continue
                cache.retire()
                del self._caches[name]
                if name in present:
                    self._caches[name] = WatchCache(present[name])
            self._follower.follow(cache.resource for cache in self._caches.values())

    def list_kinds(self, kinds: Sequence[Resource]) -> Mapping[Resource, int]:
        """Lists kinds: together those whose objects fit into a page, and each of the others by
        itself.
        """
        listed = self._store.resource_version()  # first: what comes later is in the log
        counts = self._store.count_objects(kinds)
        large = [kind for kind in kinds if counts.get(kind, PAGE) >= PAGE]
        small = [kind for kind in kinds if kind not in large]
        positions = self._fill(small, listed, {kind for kind, count in counts.items() if not count})
        for kind in large:
            try:
                positions |= self._fill([kind], self._store.resource_version())
            except errors.WrongTypeOfKey as error:  # it costs this kind, which is tried again
                if self._unlisted.get(kind) != error.message:
                    log.error("A kind cannot be listed", kind=kind.name, error=error.message)
                self._unlisted[kind] = error.message
        return positions

    def _fill(
        self, kinds: Sequence[Resource], listed: int, empty: Collection[Resource] = ()
    ) -> dict[Resource, int]:
        """Lists these kinds, but for the empty ones. `listed` is a resourceVersion from before
        anything of them was read. Returns the positions reached.
        """
        objects = {kind: {} if kind in empty else self._list(kind) for kind in kinds}
        # Writes from while the pages were read are in the log. They are applied before watches may
        # start, so that no watcher gets a change of an object that it has already listed.
        reached = self._store.resource_version()
        caught_up = self._catch_up(objects, listed)
        positions = {kind: max(caught_up[kind], reached) for kind in kinds}
        pasts = read_past(self._store.io, positions, HISTORY, HISTORY_BYTES)
        for kind, position in positions.items():
            if kind.model is CustomResourceDefinition:
                register_all(self.scheme, _definitions(objects[kind].values()))
            cache, past = self._caches[kind.name], pasts[kind]
            readable = _readable_past(past.changes, objects[kind])
            cache.refill(objects[kind].values(), position, replace(past, changes=readable))
            self._unlisted.pop(kind, None)
        return positions

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
                obj = damage.decode_change(change)
                if change.type == "DELETED" or obj is not None:
                    _overlay(objects[change.resource], change, obj)
            positions = {**positions, **changes.positions}
            if not changes.entries:
                break
        return positions


def _definitions(entries: Iterable[Entry]) -> Iterator[CustomResourceDefinition]:
    for entry in entries:
        assert isinstance(entry.obj, CustomResourceDefinition)  # the caller compared the kind
        yield entry.obj


def _readable(
    cache: WatchCache, changes: Iterable[WatchEntry], recent: RecentWrites
) -> list[WatchEntry]:
    """Returns the changes that watchers can get.

    A DELETED entry that cannot be decoded is reported with the last cached state of its object.
    Another entry that cannot be decoded is left out, since the object itself may not have changed:
    any program can append to the log.
    """
    readable: list[WatchEntry] = []
    for change in changes:
        if recent.take(change):
            readable.append(change)
        elif (obj := damage.decode_change(change)) is not None:
            raw = renew_json(change.raw, obj)
            readable.append(change if raw is change.raw else replace(change, raw=raw))
        elif change.type == "DELETED" and (last := cache.get(change.key)) is not None:
            readable.append(replace(change, raw=last.raw))
    return readable


def _readable_past(changes: Iterable[WatchEntry], objects: Mapping[str, Entry]) -> list[WatchEntry]:
    """Returns the changes of the past that watchers can get, as `_readable` does."""
    states: dict[str, bytes] = {}  # the last ones of the objects
    readable: list[WatchEntry] = []
    for change in changes:
        present = objects.get(change.key)
        if present is not None and present.version == change.resource_version:
            raw = present.raw
        elif (obj := damage.decode_change(change)) is not None:
            raw = renew_json(change.raw, obj)
        elif change.type == "DELETED" and change.key in states:
            raw = states[change.key]
        else:
            continue
        states[change.key] = raw
        readable.append(change if raw is change.raw else replace(change, raw=raw))
    return readable


def _overlay(objects: dict[str, Entry], change: WatchEntry, obj: KubeObject | None) -> None:
    present = objects.get(change.key)
    if present is not None and present.version > change.resource_version:
        return
    if change.type == "DELETED" or obj is None:
        objects.pop(change.key, None)
    else:
        raw = renew_json(change.raw, obj)
        objects[change.key] = Entry(change.resource, change.key, raw, change.resource_version)


def _build_entry(resource: Resource, raw: bytes, obj: KubeObject) -> Entry:
    version = int(obj.metadata.resource_version or 0)
    return Entry(resource, obj.key, renew_json(raw, obj), version, obj)
