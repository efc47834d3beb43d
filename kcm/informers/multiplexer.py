"""One thread and one blocking read for all kinds of a process (design 0022).

Guarantees: each reflector gets its entries in order; a kind that fails does not stop the others;
while the store is away positions are kept, so nothing is listed again only because of that; one
read brings several entries when they come fast; the thread survives every error.

Does not guarantee that a kind which is added late is listed before the read under way returns (at
most `block_ms`).
"""

from __future__ import annotations

import random
import threading
from collections import defaultdict
from collections.abc import Sequence

import structlog

from kcm.api.scheme import Resource
from kcm.clock import Clock
from kcm.errors import EpochChanged, Temporary
from kcm.informers.backoff import BackoffManager
from kcm.informers.freshness import CacheProgress
from kcm.informers.observer import Observer
from kcm.informers.options import InformerOptions
from kcm.informers.reflector import AnyReflector
from kcm.informers.source import Changes, ListerWatcher, WatchEntry

log = structlog.get_logger(__name__)


class WatchMultiplexer:
    """Drives reflectors. `turn` is one round, `run` repeats it, and `start` does so in a thread."""

    def __init__(
        self,
        source: ListerWatcher,
        progress: CacheProgress,
        *,
        options: InformerOptions,
        clock: Clock,
        rng: random.Random,
        observer: Observer,
    ) -> None:
        self._source = source
        self._progress = progress
        self._options = options
        self._clock = clock
        self._observer = observer
        self._backoff = BackoffManager(
            clock,
            rng,
            initial=options.unavailable_backoff_initial,
            maximum=options.unavailable_backoff_max,
            reset_after=options.list_backoff_reset,
            jitter=0.5,
        )
        self._lock = threading.Lock()
        # Replaced, never changed in place: a turn works on the tuple it began with.
        self._reflectors: tuple[AnyReflector, ...] = ()
        self._stop = threading.Event()
        # Set to end a pause: by stop, by a new reflector, by a sync that waits.
        self._wake = threading.Event()
        self._thread: threading.Thread | None = None
        progress.on_wait(self._wake.set)

    def add(self, reflector: AnyReflector) -> None:
        """Drives this reflector too, from the next turn on."""
        with self._lock:
            self._reflectors = (*self._reflectors, reflector)
        self._wake.set()

    def remove(self, reflector: AnyReflector) -> None:
        """Drives this reflector no more, from the next turn on."""
        with self._lock:
            self._reflectors = tuple(r for r in self._reflectors if r is not reflector)

    def start(self) -> None:
        """Runs in a daemon thread. Another call changes nothing."""
        with self._lock:
            if self._thread is None:
                self._thread = threading.Thread(target=self.run, name="informer-watch", daemon=True)
                self._thread.start()

    def stop(self) -> None:
        """Asks the thread to end after its turn."""
        self._stop.set()
        self._wake.set()

    def join(self, timeout: float) -> bool:
        """Waits up to `timeout` seconds for the thread; returns whether it has ended."""
        if self._thread is None:
            return True
        self._thread.join(timeout)
        return not self._thread.is_alive()

    def run(self) -> None:
        """Takes turns until stopped."""
        while not self._stop.is_set():
            self.turn()

    def turn(self) -> None:
        """Lists and resyncs what is due, reads once and hands out; backs off if the store fails."""
        # Cleared before the reflectors are read: one that is added later sets it again.
        self._wake.clear()
        reflectors = self._reflectors
        try:
            for reflector in reflectors:
                reflector.list_if_due()
                reflector.resync_if_due()
            self._read(reflectors)
        except EpochChanged as error:
            log.warning("The store has a new epoch, all kinds are listed again", error=str(error))
            for reflector in reflectors:
                reflector.expire()
        except Exception as error:  # noqa: BLE001 - the thread must outlive whatever a source raises
            self._back_off(error)
        else:
            self._backoff.reset()

    def _read(self, reflectors: Sequence[AnyReflector]) -> None:
        positions = _positions(reflectors)
        wait = self._seconds_until_due(reflectors)
        if not positions:
            if not self._stop.is_set():
                self._clock.wait(self._wake, wait)
            return
        changes = self._source.read_changes(positions, max(1, int(wait * 1000)))
        self._hand_out(reflectors, changes)
        if changes.entries and not self._stop.is_set():
            self._merge()

    def _hand_out(self, reflectors: Sequence[AnyReflector], changes: Changes) -> None:
        entries: defaultdict[Resource, list[WatchEntry]] = defaultdict(list)
        for change in changes.entries:
            entries[change.resource].append(change)
        for reflector in reflectors:
            if reflector.position is None:
                continue
            if reflector.resource in changes.gone:
                reflector.expire()
                continue
            position = changes.positions.get(reflector.resource, 0)
            reflector.apply(entries.get(reflector.resource, ()), position)

    def _merge(self) -> None:
        # Cleared before the look at the waiters: one who comes after it sets
        # the event again, so none waits for a pause to end.
        self._wake.clear()
        if not self._progress.has_waiters():
            self._clock.wait(self._wake, self._options.merge_seconds)

    def _seconds_until_due(self, reflectors: Sequence[AnyReflector]) -> float:
        longest = self._options.block_ms / 1000
        now = self._clock.monotonic()
        due = min((reflector.due_at() for reflector in reflectors), default=now + longest)
        return min(longest, max(0.0, due - now))

    def _back_off(self, error: Exception) -> None:
        delay = self._backoff.next()
        surprise = None if isinstance(error, Temporary) else error
        log.warning(
            "Informers cannot read the store",
            delay=round(delay, 3),
            error=str(error),
            exc_info=surprise,
        )
        self._observer.on_failure("", "read", error)
        self._clock.wait(self._stop, delay)


def _positions(reflectors: Sequence[AnyReflector]) -> dict[Resource, int]:
    """Returns where to read on. Of several caches of one kind, the one furthest behind decides."""
    positions: dict[Resource, int] = {}
    for reflector in reflectors:
        if reflector.position is not None:
            position = reflector.position
            positions[reflector.resource] = min(
                position, positions.get(reflector.resource, position)
            )
    return positions
