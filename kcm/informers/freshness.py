"""How far each cache has come, and waiting until it is far enough (design 0011).

Guarantees: when `FreshnessBarrier.wait` returns, the caches of these kinds hold every write that
the store had acknowledged when it was called, or newer ones. Each waiter sleeps on an event of its
own; nothing polls.

Does not guarantee that the caches agree with each other at one instant, nor anything about kinds
that were not named.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from kcm.api.scheme import Resource
from kcm.clock import Clock
from kcm.errors import CacheNotSynced
from kcm.informers.source import ListerWatcher

NOTHING = -1


class CachePosition:
    """How far one cache has come: its list's resourceVersion, or the last entry that it read."""

    def __init__(self, progress: CacheProgress) -> None:
        self._progress = progress
        self.reached = NOTHING

    def advance(self, resource_version: int) -> None:
        """Says that the cache holds everything up to here."""
        self.reached = resource_version
        self._progress.wake_waiters()

    def invalidate(self) -> None:
        """Says that the cache may have lost something, so it counts for nothing until
        it is listed.
        """
        self.reached = NOTHING


@dataclass(slots=True)
class _Waiter:
    targets: Mapping[Resource, int]
    stop: threading.Event
    woken: threading.Event = field(default_factory=threading.Event)


class CacheProgress:
    """The positions of all caches of a process, and the threads that wait for them."""

    def __init__(self, hurry: Callable[[], None] = lambda: None) -> None:
        self._lock = threading.Lock()
        self._marks: dict[Resource, tuple[CachePosition, ...]] = {}
        self._waiters: list[_Waiter] = []
        self._closed = False
        self._hurry = hurry

    def mark(self, resource: Resource) -> CachePosition:
        """Returns the position of a new cache of this kind."""
        mark = CachePosition(self)
        with self._lock:
            self._marks[resource] = (*self._marks.get(resource, ()), mark)
        return mark

    def forget(self, resource: Resource) -> None:
        """Drops the caches of a kind; nobody waits for it any longer."""
        with self._lock:
            self._marks.pop(resource, None)

    def position_of(self, resource: Resource) -> int:
        """Returns how far every cache of the kind has come; NOTHING if one is not listed yet.

        Raises: CacheNotSynced if there is no cache of this kind.
        """
        marks = self._marks.get(resource)
        if not marks:
            raise CacheNotSynced(f"no informer caches {resource.name}")
        return min(mark.reached for mark in marks)

    def on_wait(self, hurry: Callable[[], None]) -> None:
        """Sets a function to call whenever somebody begins to wait."""
        self._hurry = hurry

    def has_waiters(self) -> bool:
        """Reports whether anybody waits."""
        return bool(self._waiters)

    def behind(self, targets: Mapping[Resource, int]) -> list[Resource]:
        """Returns the kinds that have not reached their target."""
        return [resource for resource, rv in targets.items() if self.position_of(resource) < rv]

    def wake_waiters(self) -> None:
        """Wakes whoever has what they wait for, or must stop."""
        if not self._waiters:
            return
        with self._lock:
            for waiter in self._waiters:
                if waiter.stop.is_set() or not self.behind(waiter.targets):
                    waiter.woken.set()

    def close(self) -> None:
        """Wakes everybody, for nothing advances any more."""
        with self._lock:
            self._closed = True
            for waiter in self._waiters:
                waiter.woken.set()

    def wait(
        self, targets: Mapping[Resource, int], timeout: float, stop: threading.Event, clock: Clock
    ) -> bool:
        """Waits up to `timeout` seconds until every kind has reached its target; returns whether it
        has.
        """
        if not self.behind(targets):
            return True
        waiter = _Waiter(targets, stop)
        with self._lock:
            # First appended, then checked; an advance first moves its position, then
            # looks for waiters. In any interleaving one of them sees the other.
            self._waiters.append(waiter)
            if self._closed or not self.behind(targets):
                waiter.woken.set()
        try:
            self._hurry()
            clock.wait(waiter.woken, timeout)
        finally:
            with self._lock:
                self._waiters.remove(waiter)
        return not self.behind(targets)


class FreshnessBarrier:
    """Lets a sync wait until the caches that it reads hold every earlier write."""

    def __init__(self, source: ListerWatcher, progress: CacheProgress, clock: Clock) -> None:
        self._source = source
        self._progress = progress
        self._clock = clock

    def wait(
        self, resources: Sequence[Resource], timeout: float, stop: threading.Event
    ) -> Mapping[Resource, int]:
        """Asks the store once for the last writes, waits for the caches, and returns the targets.

        `stop` is noticed when a cache advances, and at once when the factory shuts down. Raises:
        CacheNotSynced after `timeout` seconds or at a stop, and what the source raises.
        """
        targets = self._source.last_rvs(resources)
        if not self._progress.wait(targets, timeout, stop, self._clock):
            raise CacheNotSynced(self._explain(targets, timeout))
        return targets

    def _explain(self, targets: Mapping[Resource, int], timeout: float) -> str:
        late = ", ".join(
            f"{resource.name} at {self._progress.position_of(resource)} of {targets[resource]}"
            for resource in self._progress.behind(targets)
        )
        return f"caches did not reach the store's last write within {timeout:g} s: {late}"
