"""Keeps one kind's cache equal to the store: lists, then watches, and lists again when needed.

Guarantees: after a failure, a 410 or a new epoch the whole kind is listed again, and the sink
learns of every object that no longer exists. An object never goes back to a state older than one
that the sink has seen since that list. The cache's position advances only to what the sink has
processed.

Does not guarantee that the sink sees every change: a list skips those in between.

A reflector has no thread. The multiplexer reads for all kinds at once and calls each reflector in
turn, so no locks are needed here.

Source: client-go `tools/cache/reflector.go`, Kubernetes 1.33. Departures: one blocking read per
process instead of one per kind; the first list after a 410 comes at once, and only repeated ones
back off.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Generic, Protocol, TypeVar

import structlog

from kcm.api.scheme import Resource
from kcm.apimachinery.base import compact
from kcm.apimachinery.meta_v1 import KubeObject
from kcm.clock import Clock
from kcm.errors import ApiError, EpochChanged, Forbidden, NotFound, StoreUnavailable
from kcm.informers.backoff import BackoffManager
from kcm.informers.delta_fifo import DeltaType
from kcm.informers.freshness import CachePosition
from kcm.informers.observer import FailedStep, Observer
from kcm.informers.source import ListerWatcher, WatchEntry
from kcm.informers.views import ObjectView
from kcm.store.damage import log_skipped_entry, require_whole

T = TypeVar("T", bound=KubeObject)
log = structlog.get_logger(__name__)

TransformFunc = Callable[[T], T]

NEVER = float("inf")
# Seconds until a list that the server refused is tried again: the first, doubled up to the last.
# A server that has just started refuses for some seconds, until it has read its rules.
REFUSED_AGAIN = (0.5, 30.0)

_DELTA_TYPES = {
    "ADDED": DeltaType.ADDED,
    "MODIFIED": DeltaType.UPDATED,
    "DELETED": DeltaType.DELETED,
}


class ReflectorSink(Protocol[T]):
    """The consumer of a reflector's objects (a Controller). All calls come from one thread."""

    def replace(self, objects: Sequence[T]) -> None: ...

    def apply(self, delta_type: DeltaType, key: str, obj: T) -> None: ...

    def resync(self) -> None: ...

    def current(self, key: str) -> T | None: ...


class AnyReflector(Protocol):
    """A reflector of objects of any type, as the multiplexer uses it."""

    @property
    def resource(self) -> Resource: ...

    @property
    def position(self) -> int | None: ...

    def due_at(self) -> float: ...

    def list_if_due(self) -> bool: ...

    def resync_if_due(self) -> None: ...

    def apply(self, changes: Sequence[WatchEntry], position: int) -> None: ...

    def expire(self) -> None: ...


class Reflector(Generic[T]):
    """Lists and watches one kind. `resync_period` is in seconds, 0 for never.

    After every list but the first, `on_relist` is called with the list's resourceVersion: objects
    may have been created and deleted since the last change that the sink has seen.
    """

    def __init__(
        self,
        resource: Resource,
        source: ListerWatcher,
        sink: ReflectorSink[T],
        view: ObjectView[T],
        *,
        mark: CachePosition,
        backoff: BackoffManager,
        clock: Clock,
        observer: Observer,
        transform: TransformFunc[T] | None = None,
        resync_period: float = 0.0,
        should_resync: Callable[[], bool] | None = None,
        on_relist: Callable[[int], None] | None = None,
    ) -> None:
        self.resource = resource
        self._source = source
        self._sink = sink
        self._view = view
        self._mark = mark
        self._backoff = backoff
        self._clock = clock
        self._observer = observer
        self._transform = transform
        self._resync_period = resync_period
        self._should_resync = should_resync
        self._on_relist = on_relist
        self._has_listed = False
        # Why the server refuses to list the kind, "" while it does not.
        self.refusal = ""
        first, longest = REFUSED_AGAIN
        self._refusals = BackoffManager(
            clock, random.Random(), initial=first, maximum=longest, reset_after=NEVER, jitter=0.0
        )
        # None before the first list, and while another list is due.
        self._position: int | None = None
        self._list_at = clock.monotonic()
        self._resync_at = clock.monotonic() + resync_period if resync_period else NEVER
        # Entries up to here may be older than the listed object of their key.
        self._replays_until = 0

    @property
    def position(self) -> int | None:
        """The resourceVersion from which to read on, None while a list is due."""
        return self._position

    @property
    def last_sync_resource_version(self) -> str:
        """The resourceVersion up to which the cache has every write, "" while a list is due."""
        return "" if self._mark.reached < 0 else str(self._mark.reached)

    def due_at(self) -> float:
        """Returns the time of the next list or resync, in seconds of the monotonic clock."""
        return min(self._resync_at, self._list_at if self._position is None else NEVER)

    def list_if_due(self) -> bool:
        """Lists if a list is due, and reports whether it has.

        Raises: StoreUnavailable and EpochChanged, which concern all kinds; other failures cause
        another list.
        """
        if self._position is None and self._clock.monotonic() >= self._list_at:
            try:
                self._list()
                return True
            except (StoreUnavailable, EpochChanged):
                raise
            except (Forbidden, NotFound) as error:
                self._refuse(error)
            except Exception as error:  # noqa: BLE001 - any failure calls for another list
                self._fail("list", error)
        return False

    def resync_if_due(self) -> None:
        """Resyncs if the period is over and the resync of any handler is due."""
        if self._position is None or self._resync_at == NEVER:
            return
        now = self._clock.monotonic()
        if now < self._resync_at:
            return
        self._resync_at = now + self._resync_period
        if self._should_resync is None or self._should_resync():
            try:
                self._sink.resync()
            except Exception as error:  # noqa: BLE001 - any failure calls for another list
                self._fail("resync", error)

    def apply(self, changes: Sequence[WatchEntry], position: int) -> None:
        """Processes entries of this kind, and moves the position up to `position`."""
        if self._position is None:
            return
        if changes and changes[0].resource_version <= self._position:
            # Another informer of this kind reads from further back.
            changes = [change for change in changes if change.resource_version > self._position]
        try:
            for change in changes:
                self._apply_one(change)
        except Exception as error:  # noqa: BLE001 - any failure calls for another list
            self._fail("watch", error)
            return
        self._position = max(position, self._position)
        self._mark.advance(self._position)
        if changes:
            self._observer.on_watch(self._view.name, len(changes))

    def expire(self) -> None:
        """Makes a list due, since entries were lost (410) or positions are void (new epoch)."""
        self._relist_in(self._backoff.next_or_now())
        log.info("Informer lists again", kind=self._view.name)

    def _list(self) -> None:
        started = self._clock.monotonic()
        listed = self._source.list_all(self.resource)
        # Each object is converted before the next is read, so that only one is in memory twice.
        objects = [self._find_cached(obj) or self._convert(obj) for obj in listed.objects]
        self._sink.replace(objects)
        self._replays_until = max(map(_resource_version, objects), default=0)
        self._position = listed.resource_version
        self._mark.advance(listed.resource_version)
        self._observer.on_list(self._view.name, len(objects), self._clock.monotonic() - started)
        if self._has_listed and self._on_relist is not None:
            self._on_relist(listed.resource_version)
        self._has_listed, self.refusal = True, ""
        self._refusals.reset()

    def _find_cached(self, obj: KubeObject) -> T | None:
        """Returns the cached object if it is of the same version as `obj`, else None.

        This saves the conversion of `obj`.
        """
        current = self._sink.current(obj.key)
        if current is None or current.uid != obj.uid:
            return None
        return current if _resource_version(current) == _resource_version(obj) else None

    def _convert(self, obj: KubeObject) -> T:
        converted = self._view.convert(obj)
        return converted if self._transform is None else compact(self._transform(converted))

    def _apply_one(self, change: WatchEntry) -> None:
        if change.type != "BOOKMARK" and not self._is_replay(change):
            obj = self._read(change)
            if obj is not None:
                self._sink.apply(_DELTA_TYPES[change.type], change.key, obj)
        self._position = change.resource_version

    def _read(self, change: WatchEntry) -> T | None:
        """Returns the object of an entry. For a deletion that cannot be read it returns the cached
        one.

        Any other entry that cannot be read is skipped (None), since any client may have added it.
        """
        try:
            obj = self._view.decode(change.raw)
            require_whole(obj, change.key)
        except (ApiError, ValueError, TypeError, KeyError, RecursionError) as error:
            log_skipped_entry(change, error)
            self._observer.on_failure(self._view.name, "watch", error)
            return self._sink.current(change.key) if change.type == "DELETED" else None
        return obj if self._transform is None else compact(self._transform(obj))

    def _is_replay(self, change: WatchEntry) -> bool:
        # A list's resourceVersion is taken before its first page, so listed
        # objects may be newer than it, and the watch brings their past states again.
        if change.resource_version > self._replays_until:
            return False
        current = self._sink.current(change.key)
        return current is not None and _resource_version(current) >= change.resource_version

    def _fail(self, step: FailedStep, error: Exception) -> None:
        delay = self._backoff.next()
        self._relist_in(delay)
        log.warning(
            "Informer failed, lists again",
            kind=self._view.name,
            step=step,
            delay=round(delay, 3),
            exc_info=error,
        )
        self._observer.on_failure(self._view.name, step, error)

    def _refuse(self, error: ApiError) -> None:
        """Waits for longer, since the kind is not served, or may not be listed. It says so once."""
        self._relist_in(self._refusals.next())
        if self.refusal != str(error):
            log.warning("A kind cannot be listed", kind=self._view.name, error=str(error))
        self.refusal = str(error)
        self._observer.on_failure(self._view.name, "list", error)

    def _relist_in(self, delay: float) -> None:
        self._mark.invalidate()
        self._position = None
        self._list_at = self._clock.monotonic() + delay


def _resource_version(obj: KubeObject) -> int:
    return int(obj.metadata.resource_version or 0)
