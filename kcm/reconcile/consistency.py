"""Makes each sync see what earlier syncs wrote.

With the local store a sync waits for fresh caches (`FreshCaches`, design 0011). A remote store
cannot tell its last write. With it the caches are fresh when they have what was dispatched, so that
a sync sees the change that woke it (design 0060). For what earlier syncs wrote, it waits until the
caches of its process have the expected changes (`ExpectedChanges`): objects that will appear, by
name, and objects that will be deleted, by uid. These are stored in Redis before each write, so they
outlive the process.

Departure: upstream syncs a key whose expectations are not met, but neither creates nor deletes.
Here the whole sync waits, since half of a plan must not be carried out.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, Protocol

from kcm import errors
from kcm.api.scheme import Resource
from kcm.apimachinery.meta_v1 import KubeObject
from kcm.clock import Clock
from kcm.informers.delta_fifo import DeletedFinalStateUnknown
from kcm.informers.freshness import FreshnessBarrier
from kcm.informers.indexer import Indexer
from kcm.informers.shared_informer import SharedIndexInformer
from kcm.reconcile.expectations import ControllerExpectations, Pending
from kcm.redisio import Fence
from kcm.store import WriteItem, WriteResult
from kcm.store.objects import ObjectStore

# Seconds until expectations expire. It is long, since a sync after that would trust a cache that
# may still lag, and create the same pods again (kubernetes/kubernetes issue 129795). Expectations
# that will never be met are found by reading the store and need no expiry.
KEPT = 86_400.0
REMEMBERED = 10_000  # deleted objects of a kind that a process remembers


class SyncExpectations(Protocol):
    """The expectations of one sync. The executor updates them."""

    def expect_writes(self, items: Sequence[WriteItem]) -> None:
        """Adds the changes of writes that are about to be made. Raises Fenced."""
        ...

    def observe_results(self, results: Sequence[WriteResult]) -> None:
        """Removes the changes of writes that failed."""
        ...


class Consistency(Protocol):
    """Makes syncs wait for their caches. The runner calls it."""

    def wait_until_fresh(self, timeout: float, stop: threading.Event) -> None:
        """Waits until the caches have all that was written, or dispatched, before this call.

        The runner calls it once after it took keys; from then on no other worker syncs these keys.
        Raises CacheNotSynced after `timeout` seconds, or when `stop` is set.
        """
        ...

    def wait(self, key: str, timeout: float, stop: threading.Event) -> None:
        """Waits until the caches have what earlier syncs of the key wrote.

        Only stores whose freshness is known by key need it. Raises CacheNotSynced after `timeout`
        seconds, or when `stop` is set.
        """
        ...

    def expectations(self, key: str, fence: Fence) -> SyncExpectations:
        """Returns the expectations of a sync that begins now."""
        ...


class NoExpectations:
    """Keeps no expectations, for controllers whose caches are always fresh when a sync begins."""

    def expect_writes(self, items: Sequence[WriteItem]) -> None:
        """Does nothing."""

    def observe_results(self, results: Sequence[WriteResult]) -> None:
        """Does nothing."""


NO_EXPECTATIONS = NoExpectations()


class FreshCaches:
    """Waits until the caches of `resources` have all writes of the local store, or all changes of
    another API server that were dispatched.
    """

    def __init__(
        self, barrier: FreshnessBarrier, resources: Callable[[], Sequence[Resource]]
    ) -> None:
        self._barrier = barrier
        self._resources = resources

    def wait_until_fresh(self, timeout: float, stop: threading.Event) -> None:
        self._barrier.wait(self._resources(), timeout, stop)

    def wait(self, key: str, timeout: float, stop: threading.Event) -> None:
        """Does nothing: the caches have been fresh since the key was taken."""

    def expectations(self, key: str, fence: Fence) -> SyncExpectations:
        return NO_EXPECTATIONS


class CacheChanges:
    """Wakes the syncs that wait for a change in one of the caches of this process.

    All controllers share it. Each cache calls it in the informer's own thread, so a change costs
    one short call, however many controllers read the cache.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiters: set[threading.Event] = set()
        # The keys of deleted objects, by the name of the resource. An object that is created and
        # deleted between two checks is in no cache, but here.
        self._deleted: dict[str, OrderedDict[str, None]] = {}

    def follow(self, informer: SharedIndexInformer[Any]) -> None:
        """Takes the changes of this cache as well. A cache that is followed stays followed."""
        with self._lock:
            if informer.resource.name in self._deleted:
                return
            self._deleted[informer.resource.name] = OrderedDict()
        handler = _ChangeHandler(self, informer.resource)
        informer.add_event_handler_with_resync_period(handler, 0, direct=True)

    @contextmanager
    def waiter(self) -> Iterator[threading.Event]:
        """Yields an event that is set after each change, until the context ends."""
        woken = threading.Event()
        with self._lock:
            self._waiters.add(woken)
        try:
            yield woken
        finally:
            with self._lock:
                self._waiters.discard(woken)

    def wake(self) -> None:
        """Wakes the syncs that wait."""
        with self._lock:
            for woken in self._waiters:
                woken.set()

    def add_deleted(self, resource: str, key: str) -> None:
        """Remembers an object that was deleted."""
        with self._lock:
            deleted = self._deleted[resource]
            deleted[key] = None
            if len(deleted) > REMEMBERED:
                deleted.popitem(last=False)

    def was_deleted(self, resource: str, key: str) -> bool:
        """Reports whether the object was in the cache and is gone."""
        return key in self._deleted[resource]


class _ChangeHandler:
    """The event handler of one cache."""

    def __init__(self, changes: CacheChanges, resource: Resource) -> None:
        self._changes = changes
        self._resource = resource

    def on_add(self, obj: KubeObject, is_in_initial_list: bool) -> None:
        self._changes.wake()

    def on_update(self, old: KubeObject, new: KubeObject) -> None:
        self._changes.wake()

    def on_delete(self, obj: KubeObject | DeletedFinalStateUnknown[Any]) -> None:
        # A tombstone has the key as well.
        self._changes.add_deleted(self._resource.name, obj.key)
        self._changes.wake()


class ExpectedChanges:
    """Waits, with a remote store, until the caches of this process have what earlier syncs wrote.

    After the timeout, the objects of the missing changes are read from the store. An object that
    the store does not have will never appear, and one that is not being deleted will never go, so
    they are expected no longer. If a process dies before a write that it expects, the key is
    delayed by one timeout.
    """

    def __init__(
        self,
        expectations: ControllerExpectations,
        informers: Iterable[SharedIndexInformer[Any]],
        store: ObjectStore,
        clock: Clock,
        fresh: FreshCaches,
        *,
        changes: CacheChanges,
        hurrying: Callable[[], AbstractContextManager[None]] = nullcontext,
    ) -> None:
        """While a context of `hurrying` lasts, the caches are filled without rest."""
        self._fresh = fresh
        self._hurrying = hurrying
        self._expectations = expectations
        self._store = store
        self._clock = clock
        self._changes = changes
        self._caches: dict[str, Indexer[Any]] = {}  # keyed by the name of the resource
        for informer in informers:
            self._caches[informer.resource.name] = informer.get_indexer()
            changes.follow(informer)

    def expectations(self, key: str, fence: Fence) -> SyncExpectations:
        return _Expected(self._expectations, self._caches.keys(), key, fence)

    def wait_until_fresh(self, timeout: float, stop: threading.Event) -> None:
        self._fresh.wait_until_fresh(timeout, stop)

    def wait(self, key: str, timeout: float, stop: threading.Event) -> None:
        pending = self._expectations.pending(key)
        if not self._list_missing(pending):
            return
        deadline = self._clock.monotonic() + timeout
        with self._changes.waiter() as woken, self._hurrying():
            while missing := self._list_missing(pending):
                left = deadline - self._clock.monotonic()
                if left <= 0 or stop.is_set():
                    self._give_up(key, missing)
                    return
                self._clock.wait(woken, left)
                woken.clear()

    def _list_missing(self, pending: Pending) -> list[str]:
        created = [entry for entry in pending.creations if not self._has_appeared(entry)]
        return created + [entry for entry in pending.deletions if not self._went(entry)]

    def _has_appeared(self, entry: str) -> bool:
        resource, key = entry.split(" ")
        cached = self._caches[resource].get_by_key(key)
        return cached is not None or self._changes.was_deleted(resource, key)

    def _went(self, entry: str) -> bool:
        resource, key, uid = entry.split(" ")
        cached = self._caches[resource].get_by_key(key)
        return cached is None or cached.uid != uid or cached.deleting

    def _give_up(self, key: str, missing: Sequence[str]) -> None:
        """Removes expectations that will never be met. Raises CacheNotSynced if others are left."""
        late = [entry for entry in missing if self._is_late(*entry.split(" "))]
        settled = set(missing) - set(late)
        self._expectations.observe_changes(key, creations=settled, deletions=settled)
        if late:
            raise errors.CacheNotSynced(f"the caches do not show yet: {', '.join(late)}")

    def _is_late(self, resource: str, key: str, uid: str = "") -> bool:
        """Reports whether the store has a change that the cache lacks."""
        stored = self._store.find(self._store.scheme.by_name(resource), key)
        if not uid:
            return stored is not None
        return stored is None or stored.uid != uid or stored.deleting


class _Expected:
    """The expectations of one sync, to which each batch of a slow start adds."""

    def __init__(
        self, expectations: ControllerExpectations, cached: Container[str], key: str, fence: Fence
    ) -> None:
        self._expectations = expectations
        self._cached = cached
        self._key = key
        self._fence = fence
        self._creations: set[str] = set()
        self._deletions: set[str] = set()

    def expect_writes(self, items: Sequence[WriteItem]) -> None:
        creations, deletions = self._entries(items)
        self._creations |= creations
        self._deletions |= deletions
        if creations or deletions:
            self._expectations.expect(
                self._key,
                creations=self._creations,
                deletions=self._deletions,
                fence=self._fence,
            )

    def observe_results(self, results: Sequence[WriteResult]) -> None:
        creations, deletions = self._entries([r.item for r in results if not r.ok])
        self._creations -= creations
        self._deletions -= deletions
        if creations or deletions:
            self._expectations.observe_changes(self._key, creations=creations, deletions=deletions)

    def _entries(self, items: Sequence[WriteItem]) -> tuple[set[str], set[str]]:
        mine = [item for item in items if item.resource.name in self._cached]
        named = [(item, f"{item.resource.name} {item.obj.key}") for item in mine]
        return (
            {name for item, name in named if item.op == "create"},
            {f"{name} {item.obj.uid}" for item, name in named if item.op == "delete"},
        )
