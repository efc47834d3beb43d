"""The watch multiplexer: one thread and one read for all kinds of a process (design 0022).

The thread blocks in its reads and hands out changes to the reflectors. With the option `pull` it
reads only now and then, and a thread that needs fresh caches calls `catch_up` itself: so a process
that only syncs keys is not woken by every change of every kind.

Guarantees: each reflector gets its entries in order. A kind that fails does not stop the others.
While the store is unavailable, positions are kept, so that nothing is listed again only because of
that. One read returns several entries when they come fast. The thread survives every error.

Does not guarantee that a kind that is added late is listed before the present read returns (at most
`block_ms`; with `pull` it is listed at once).
"""

from __future__ import annotations

import random
import threading
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence

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
from kcm.store.pace import ReadPace

log = structlog.get_logger(__name__)


class WatchMultiplexer:
    """Drives reflectors. `turn` reads once, `run` repeats it, and `start` runs it in a thread.

    With `pull`, other threads may call `catch_up` meanwhile.
    """

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
        # Held while entries are read and handed out, so that each is handed out once.
        self._reading = threading.Lock()
        self._pace = ReadPace(
            clock,
            shortest=options.merge_seconds,
            interval=options.read_interval,
            burst=options.read_burst,
        )
        self._after_turn: Callable[[], None] = lambda: None
        self._on_read: Callable[[Sequence[WatchEntry]], None] = lambda entries: None
        # Replaced, never changed in place: a turn uses the tuple that it began with.
        self._reflectors: tuple[AnyReflector, ...] = ()
        self._stop = threading.Event()
        # Set to end a pause: by `stop`, by a new reflector, by a sync that waits.
        self._wake = threading.Event()
        self._thread: threading.Thread | None = None
        progress.on_wait(self._wake.set)

    def add(self, reflector: AnyReflector) -> None:
        """Drives this reflector as well, from the next turn on."""
        with self._lock:
            self._reflectors = (*self._reflectors, reflector)
        self._wake.set()

    def remove(self, reflector: AnyReflector) -> None:
        """Stops driving this reflector, from the next turn on."""
        with self._lock:
            self._reflectors = tuple(r for r in self._reflectors if r is not reflector)

    def on_turn(self, after_turn: Callable[[], None]) -> None:
        """Sets a function that the thread calls after each turn. Its exceptions are logged."""
        self._after_turn = after_turn

    def on_read(self, callback: Callable[[Sequence[WatchEntry]], None]) -> None:
        """Sets a function that gets all entries of each read before they are handed out."""
        self._on_read = callback

    def start(self) -> None:
        """Runs in a daemon thread, if there are to be threads. Further calls do nothing."""
        with self._lock:
            if self._thread is None and self._options.threaded:
                self._thread = threading.Thread(target=self.run, name="informer-watch", daemon=True)
                self._thread.start()

    def stop(self) -> None:
        """Makes the thread end after its turn."""
        self._stop.set()
        self._wake.set()

    def join(self, timeout: float) -> bool:
        """Waits up to `timeout` seconds for the thread. Reports whether it has ended."""
        if self._thread is None:
            return True
        self._thread.join(timeout)
        return not self._thread.is_alive()

    def run(self) -> None:
        """Takes turns until stopped."""
        while not self._stop.is_set():
            self.turn()

    def turn(self) -> None:
        """Lists and resyncs what is due, reads once, and hands out the changes.

        Then it waits until the next read is due. If the store fails, it backs off.
        """
        # Cleared before the reflectors are read: one that is added later sets it again.
        self._wake.clear()
        reflectors = self._reflectors
        try:
            with self._reading:
                for reflector in reflectors:
                    reflector.list_if_due()
                    reflector.resync_if_due()
                pause = self._read(reflectors)
        except EpochChanged as error:
            self._expire_all(error)
        except Exception as error:  # noqa: BLE001 - the thread must outlive whatever a source raises
            self._back_off(error)
        else:
            self._backoff.reset()
            self._call_after_turn()
            if pause and not self._stop.is_set():
                self._clock.wait(self._wake, pause)

    def read_now(self) -> int:
        """Lists what is due and hands out all changes, in the caller's thread and without a wait.

        Returns the number of changes. Raises: StoreUnavailable.
        """
        count = 0
        with self._reading:
            reflectors = self._reflectors
            try:
                for reflector in reflectors:
                    reflector.list_if_due()
                while positions := _positions(reflectors):
                    changes = self._source.read_changes(positions, 0)
                    if not changes.entries and not changes.gone:
                        break
                    self._hand_out(reflectors, changes)
                    count += len(changes.entries)
            except EpochChanged as error:
                self._expire_all(error)
        self._call_after_turn()
        return count

    def _call_after_turn(self) -> None:
        try:
            self._after_turn()
        except Exception:  # the thread must outlive a bug in the callback
            log.exception("The callback after a read of the informers failed")

    def catch_up(self, resources: Sequence[Resource]) -> Mapping[Resource, int]:
        """Reads the changes of these kinds in the caller's thread.

        Returns their newest resourceVersions. Kinds that had to be listed, or that have no
        informer, may be left out. Raises: StoreUnavailable.
        """
        wanted = set(resources)
        with self._reading:
            reflectors = [r for r in self._reflectors if r.resource in wanted]
            try:
                for reflector in reflectors:
                    reflector.list_if_due()
                positions = _positions(reflectors)
                if not positions:
                    return {}
                changes = self._source.read_changes(positions, 0)
                self._hand_out(reflectors, changes)
            except EpochChanged as error:
                self._expire_all(error)
                return {}
            return changes.newest

    def _expire_all(self, error: EpochChanged) -> None:
        log.warning("The store has a new epoch, all kinds are listed again", error=str(error))
        for reflector in self._reflectors:
            reflector.expire()

    def _read(self, reflectors: Sequence[AnyReflector]) -> float:
        """Reads once and hands out the changes. Returns the seconds to wait before the next
        turn.
        """
        positions = _positions(reflectors)
        wait = self._seconds_until_due(reflectors)
        if not positions:
            return wait
        block_ms = 0 if self._options.pull else max(1, int(wait * 1000))
        changes = self._source.read_changes(positions, block_ms)
        self._hand_out(reflectors, changes)
        if self._options.pull:
            busy = len(changes.entries) >= self._options.busy_entries
            return min(wait, self._options.follow_busy if busy else self._options.follow_idle)
        return self._pause() if changes.entries else 0.0

    def _hand_out(self, reflectors: Sequence[AnyReflector], changes: Changes) -> None:
        if changes.entries:
            self._on_read(changes.entries)
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

    def _pause(self) -> float:
        """Returns the seconds to wait for more entries, 0 if a sync waits."""
        # Cleared before the check for waiters: a later waiter sets the event again, so none waits
        # for a pause to end.
        self._wake.clear()
        return 0.0 if self._progress.has_waiters() else self._pace.count_read()

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
    """Returns the positions to read from. Of several caches of one kind, the one furthest behind
    counts.
    """
    positions: dict[Resource, int] = {}
    for reflector in reflectors:
        if reflector.position is not None:
            position = reflector.position
            positions[reflector.resource] = min(
                position, positions.get(reflector.resource, position)
            )
    return positions
