"""The positions of caches, and the barrier at which a sync waits for fresh caches (design 0011).

Guarantees: when `FreshnessBarrier.wait` returns, the caches of these kinds have every write that
the store had acknowledged when it was called, or newer ones. A sync either waits for the thread
that fills the caches, on an event of its own, or reads the watch itself.

Does not guarantee that the caches agree with each other at one instant, nor anything about other
kinds.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Protocol

from kcm.api.scheme import Resource
from kcm.clock import Clock
from kcm.errors import CacheNotSynced
from kcm.informers.source import ListerWatcher

NOTHING = -1
PULL_AGAIN = 0.005  # seconds between the reads of a sync whose kinds have to be listed again


class CachePosition:
    """The position of one cache: its list's resourceVersion, or that of the last entry that it
    read.
    """

    def __init__(self, progress: CacheProgress) -> None:
        self._progress = progress
        self.reached = NOTHING

    def advance(self, resource_version: int) -> None:
        """Sets the resourceVersion up to which the cache has every write."""
        self.reached = resource_version
        self._progress.wake_waiters()

    def invalidate(self) -> None:
        """Sets the position to NOTHING until the next list, as the cache may have lost entries."""
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
        self._hurried = 0  # threads that wait for something else than a position
        self._closed = False
        self._hurry = hurry

    def mark(self, resource: Resource) -> CachePosition:
        """Returns a position for a new cache of this kind."""
        mark = CachePosition(self)
        with self._lock:
            self._marks[resource] = (*self._marks.get(resource, ()), mark)
        return mark

    def forget(self, resource: Resource) -> None:
        """Removes the positions of a kind, for which no thread waits any longer."""
        with self._lock:
            self._marks.pop(resource, None)

    def position_of(self, resource: Resource) -> int:
        """Returns the lowest position of the kind's caches; NOTHING if one has not listed yet.

        Raises: CacheNotSynced if there is no cache of this kind.
        """
        marks = self._marks.get(resource)
        if not marks:
            raise CacheNotSynced(f"no informer caches {resource.name}")
        return min(mark.reached for mark in marks)

    def has_listed(self, resource: Resource) -> bool:
        """Reports whether there are caches of the kind, and all of them have their first list."""
        marks = self._marks.get(resource, ())
        return bool(marks) and all(mark.reached > NOTHING for mark in marks)

    def on_wait(self, hurry: Callable[[], None]) -> None:
        """Sets a function that is called whenever a thread begins to wait."""
        self._hurry = hurry

    def has_waiters(self) -> bool:
        """Reports whether a thread waits."""
        return bool(self._waiters) or self._hurried > 0

    @contextmanager
    def hurrying(self) -> Iterator[None]:
        """Counts the caller as a thread that waits for the caches, until the context ends."""
        with self._lock:
            self._hurried += 1
        try:
            self._hurry()
            yield
        finally:
            with self._lock:
                self._hurried -= 1

    def behind(self, targets: Mapping[Resource, int]) -> list[Resource]:
        """Returns the kinds that have not reached their target resourceVersion."""
        return [resource for resource, rv in targets.items() if self.position_of(resource) < rv]

    def explain(self, targets: Mapping[Resource, int], timeout: float) -> str:
        """Returns an error message with the kinds that are behind and their positions."""
        late = ", ".join(
            f"{resource.name} at {self.position_of(resource)} of {targets[resource]}"
            for resource in self.behind(targets)
        )
        return f"caches did not reach the store's last write within {timeout:g} s: {late}"

    def wake_waiters(self) -> None:
        """Wakes the threads whose targets are reached, or that must stop."""
        if not self._waiters:
            return
        with self._lock:
            for waiter in self._waiters:
                if waiter.stop.is_set() or not self.behind(waiter.targets):
                    waiter.woken.set()

    def close(self) -> None:
        """Wakes all threads, since no cache advances any more."""
        with self._lock:
            self._closed = True
            for waiter in self._waiters:
                waiter.woken.set()

    def wait(
        self, targets: Mapping[Resource, int], timeout: float, stop: threading.Event, clock: Clock
    ) -> bool:
        """Waits up to `timeout` seconds until every kind has reached its target. Reports whether
        all have.
        """
        if not self.behind(targets):
            return True
        waiter = _Waiter(targets, stop)
        with self._lock:
            # Here a waiter is first appended and then checks the positions; an advance first sets
            # its position and then checks for waiters. In any order one of them sees the other.
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


class FreshnessBarrier(Protocol):
    """Waits until a sync's caches have every earlier write."""

    def wait(
        self, resources: Sequence[Resource], timeout: float, stop: threading.Event
    ) -> Mapping[Resource, int]:
        """Waits until the caches have the last writes, and returns the resourceVersions of these.

        Raises: CacheNotSynced after `timeout` seconds or when `stop` is set, and what the source
        raises.
        """
        ...


class WaitingBarrier:
    """Waits for the thread that fills the caches."""

    def __init__(self, source: ListerWatcher, progress: CacheProgress, clock: Clock) -> None:
        self._source = source
        self._progress = progress
        self._clock = clock

    def wait(
        self, resources: Sequence[Resource], timeout: float, stop: threading.Event
    ) -> Mapping[Resource, int]:
        """Reads the last writes from the store once, waits for the caches, and returns the targets.

        `stop` is noticed when a cache advances, and at once when the factory shuts down.
        """
        targets = self._source.last_rvs(resources)
        if not self._progress.wait(targets, timeout, stop, self._clock):
            raise CacheNotSynced(self._progress.explain(targets, timeout))
        return targets


class PullingBarrier:
    """Reads the watch in the thread of the sync, which usually takes one round trip.

    `catch_up` reads the changes of these kinds, and returns the resourceVersions of their last
    writes after the read.
    """

    def __init__(
        self,
        catch_up: Callable[[Sequence[Resource]], Mapping[Resource, int]],
        progress: CacheProgress,
        clock: Clock,
    ) -> None:
        self._catch_up = catch_up
        self._progress = progress
        self._clock = clock

    def wait(
        self, resources: Sequence[Resource], timeout: float, stop: threading.Event
    ) -> Mapping[Resource, int]:
        """Reads until the caches have all that was written before the end of the first read.

        A second read is needed if a write comes between the read and the request for the last
        writes, and more of them if a kind has to be listed or has thousands of changes.
        """
        targets = dict.fromkeys(resources, 0) | dict(self._catch_up(resources))
        deadline = self._clock.monotonic() + timeout
        pause = 0.0
        while self._progress.behind(targets):
            late = stop.is_set() or self._clock.monotonic() >= deadline
            if late or (pause and self._clock.wait(stop, pause)):
                raise CacheNotSynced(self._progress.explain(targets, timeout))
            pause = PULL_AGAIN
            self._catch_up(resources)
        return targets
