"""The last syncs of each key, and the last requests that were refused."""

from __future__ import annotations

import threading
from collections import OrderedDict, deque
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from kcm.clock import Clock
from kcm.store.writes.observing import Refusal, SyncEnd

KEPT_SYNCS = 8  # of each key
KEPT_KEYS = 5_000
KEPT_REFUSALS = 1_000
KEPT_REASONS = 3  # of one sync


@dataclass(frozen=True, slots=True)
class Sync:
    """A sync of a controller that has ended. `next` is when the key is synced again, if planned.

    `why` are the last changes because of which it was asked for since the sync before it; there are
    none for a sync that was due or is a retry.
    """

    end: SyncEnd
    time: datetime
    next: datetime | None
    why: tuple[str, ...] = ()

    def __str__(self) -> str:
        text = f"{self.time:%H:%M:%S}  {self.end.controller} for {self.end.key}: {self.end.result}"
        if self.end.error:
            text += f", {self.end.error} (failure {self.end.failures + 1})"
        if self.next:
            text += f"; next at {self.next:%H:%M:%S}"
        return f"{text}; because {', '.join(self.why)}" if self.why else text


@dataclass(frozen=True, slots=True)
class Refused:
    """A request that the API server refused; see `kcm.store.writes.observing.Refusal`."""

    refusal: Refusal
    time: datetime

    def __str__(self) -> str:
        author = self.refusal.author
        return f"{self.time:%H:%M:%S}  {author.verb} by {author.name}: {self.refusal.error}"


class SyncLog:
    """Keeps the last syncs of the keys that were synced last. Thread-safe."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._syncs: OrderedDict[tuple[str, str], deque[Sync]] = OrderedDict()
        self._wakes: OrderedDict[tuple[str, str], deque[str]] = OrderedDict()
        self._refused: deque[Refused] = deque(maxlen=KEPT_REFUSALS)

    def note_wake(self, controller: str, keys: Sequence[str], why: str) -> None:
        """Takes keys that are about to be synced because of a change."""
        with self._lock:
            for key in keys:
                reasons = self._wakes.setdefault((controller, key), deque(maxlen=KEPT_REASONS))
                reasons.append(why)
                if len(self._wakes) > KEPT_KEYS:
                    self._wakes.popitem(last=False)

    def note(self, end: SyncEnd) -> None:
        """Takes the end of a sync."""
        now = self._clock.now()
        due = None if end.delay is None else now + timedelta(seconds=end.delay)
        with self._lock:
            key = end.controller, end.key
            sync = Sync(end, now, due, tuple(self._wakes.pop(key, ())))
            self._syncs.setdefault(key, deque(maxlen=KEPT_SYNCS)).append(sync)
            self._syncs.move_to_end(key)
            if len(self._syncs) > KEPT_KEYS:
                self._syncs.popitem(last=False)

    def note_refusal(self, refusal: Refusal) -> None:
        """Takes a refused request."""
        with self._lock:
            self._refused.append(Refused(refusal, self._clock.now()))

    def of_key(self, key: str) -> list[Sync]:
        """Returns the syncs of a key by all controllers, the oldest first."""
        with self._lock:
            found = [sync for (_, own), kept in self._syncs.items() if own == key for sync in kept]
        return sorted(found, key=lambda sync: sync.time)

    def refused(self, resource: str, namespace: str, name: str) -> list[Refused]:
        """Returns the refused requests that were about an object, or may have been."""
        with self._lock:
            return [
                one
                for one in self._refused
                if one.refusal.resource == resource
                and one.refusal.namespace in ("", namespace)
                and one.refusal.name in ("", name)
            ]
