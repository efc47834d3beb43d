"""The watch multiplexer: one loop and one read for all kinds of a process (design 0022).

The loop blocks in its reads and hands out changes to the reflectors. With the option `pull` it
reads only now and then, and a thread that needs fresh caches calls `catch_up` itself: so a process
that only syncs keys is not woken by every change of every kind.

Guarantees: each reflector gets its entries in order. A kind that fails does not stop the others.
While the store is unavailable, positions are kept, so that nothing is listed again only because of
that. One read returns several entries when they come fast.

Does not guarantee that a kind that is added late is listed before the present read returns (at most
`block_ms`; with `pull` it is listed at once).
"""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence

import structlog

from kcm.api.scheme import Resource
from kcm.clock import Clock
from kcm.errors import EpochChanged
from kcm.informers.freshness import CacheProgress
from kcm.informers.observer import Observer
from kcm.informers.options import InformerOptions
from kcm.informers.reflector import AnyReflector
from kcm.informers.source import Changes, ListerWatcher, WatchEntry
from kcm.loops import Loop, Turn
from kcm.loops.pace import ReadPace

log = structlog.get_logger(__name__)


class WatchMultiplexer(Loop):
    """Drives reflectors. With `pull`, other threads may call `catch_up` meanwhile."""

    def __init__(
        self,
        source: ListerWatcher,
        progress: CacheProgress,
        *,
        options: InformerOptions,
        clock: Clock,
        observer: Observer,
    ) -> None:
        super().__init__("kcm-informers")
        self.reads = not options.pull
        self._source = source
        self._progress = progress
        self._options = options
        self._clock = clock
        self._observer = observer
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
        progress.on_wait(self.wake)  # a sync that waits ends a rest

    def add(self, reflector: AnyReflector) -> None:
        """Drives this reflector as well, from the next turn on."""
        with self._lock:
            self._reflectors = (*self._reflectors, reflector)
        self.wake()

    def remove(self, reflector: AnyReflector) -> None:
        """Stops driving this reflector, from the next turn on."""
        with self._lock:
            self._reflectors = tuple(r for r in self._reflectors if r is not reflector)

    def on_turn(self, after_turn: Callable[[], None]) -> None:
        """Sets a function that is called after each turn. Its exceptions are logged."""
        self._after_turn = after_turn

    def on_read(self, callback: Callable[[Sequence[WatchEntry]], None]) -> None:
        """Sets a function that gets all entries of each read before they are handed out."""
        self._on_read = callback

    def turn(self, patience: float) -> Turn:
        """Lists and resyncs what is due, reads once, and hands out the changes.

        A turn that has listed does not wait for changes: others wait for what was listed.
        """
        reflectors, listed = self._reflectors, False
        try:
            with self._reading:
                for reflector in reflectors:
                    listed |= reflector.list_if_due()
                    reflector.resync_if_due()
                turn = self._read(reflectors, 0.0 if listed else patience)
        except EpochChanged as error:
            self._expire_all(error)
            return Turn(worked=True, due_in=0.0)
        except Exception as error:
            self._observer.on_failure("", "read", error)
            raise
        self._call_after_turn()
        return turn

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
                self._hand_out(reflectors, positions, changes)
            except EpochChanged as error:
                self._expire_all(error)
                return {}
            return changes.newest

    def _expire_all(self, error: EpochChanged) -> None:
        log.warning("The store has a new epoch, all kinds are listed again", error=str(error))
        for reflector in self._reflectors:
            reflector.expire()

    def _read(self, reflectors: Sequence[AnyReflector], patience: float) -> Turn:
        """Reads once and hands out the changes."""
        positions = _positions(reflectors)
        wait = self._seconds_until_due(reflectors)
        if not positions:
            return Turn(upkeep_in=wait, rest=wait)
        blocks = patience > 0 and not self._options.pull
        block_ms = max(1, int(min(wait, patience) * 1000)) if blocks else 0
        changes = self._source.read_changes(positions, block_ms)
        self._hand_out(reflectors, positions, changes)
        worked = bool(changes.entries or changes.gone)
        if self._options.pull:
            busy = len(changes.entries) >= self._options.busy_entries
            follow = self._options.follow_busy if busy else self._options.follow_idle
            return Turn(worked, upkeep_in=min(wait, follow))
        return Turn(worked, rest=self._pause() if changes.entries else 0.0)

    def _hand_out(
        self,
        reflectors: Sequence[AnyReflector],
        positions: Mapping[Resource, int],
        changes: Changes,
    ) -> None:
        """Hands out what was read from `positions`. Most kinds have not changed."""
        if changes.entries:
            self._on_read(changes.entries)
        entries: defaultdict[Resource, list[WatchEntry]] = defaultdict(list)
        for change in changes.entries:
            entries[change.resource].append(change)
        reached = changes.positions
        moved = {kind for kind in reached if reached[kind] != positions.get(kind)}
        moved |= entries.keys() | changes.gone
        for reflector in reflectors:
            if reflector.resource not in moved or reflector.position is None:
                continue
            if reflector.resource in changes.gone:
                reflector.expire()
                continue
            position = reached.get(reflector.resource, 0)
            reflector.apply(entries.get(reflector.resource, ()), position)

    def _pause(self) -> float:
        """Returns the seconds to wait for more entries, 0 if a sync waits. One that begins to wait
        later wakes the loop.
        """
        return 0.0 if self._progress.has_waiters() else self._pace.count_read()

    def _seconds_until_due(self, reflectors: Sequence[AnyReflector]) -> float:
        longest = self._options.block_ms / 1000
        now = self._clock.monotonic()
        due = min((reflector.due_at() for reflector in reflectors), default=now + longest)
        return min(longest, max(0.0, due - now))


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
