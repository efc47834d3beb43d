"""Back-off: the wait for the next attempt doubles with each failure.

Source: client-go util/flowcontrol/backoff.go, Kubernetes 1.33.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from datetime import datetime

from kcm.clock import Clock


@dataclass(frozen=True, slots=True)
class BackoffEntry:
    """The delay in seconds after the last failure, and when it was recorded (Unix time)."""

    delay: float
    last_update: float


@dataclass(frozen=True, slots=True)
class BackoffPolicy:
    """Computes delays, without state.

    Delays are in seconds, times are Unix times. An entry whose last update is more than twice the
    maximum ago has expired, so the next failure starts with the initial delay.
    """

    initial: float = 10.0
    maximum: float = 300.0

    def remaining(self, entry: BackoffEntry | None, since: float, now: float) -> float:
        """Returns the remaining seconds of the delay after a failure at `since`."""
        if entry is None or self.is_expired(entry, since):
            return 0.0
        return max(since + entry.delay - now, 0.0)

    def next(self, entry: BackoffEntry | None, since: float, now: float) -> BackoffEntry:
        """Returns the entry after another failure, which happened at `since`."""
        if entry is None or self.is_expired(entry, since):
            return BackoffEntry(self.initial, now)
        return BackoffEntry(min(entry.delay * 2, self.maximum), now)

    def is_expired(self, entry: BackoffEntry, at: float) -> bool:
        """Reports whether the entry has expired at the time `at`."""
        return at - entry.last_update > 2 * self.maximum


class Backoff:
    """The back-off of many keys. Thread-safe."""

    def __init__(self, clock: Clock, policy: BackoffPolicy | None = None) -> None:
        self._clock = clock
        self._policy = policy or BackoffPolicy()
        self._lock = threading.Lock()
        self._entries: dict[str, BackoffEntry] = {}

    def delay(self, key: str) -> float:
        """Returns the delay in seconds after the key's last failure, 0 if there was none."""
        with self._lock:
            entry = self._entries.get(key)
            return entry.delay if entry else 0.0

    def is_in_backoff(self, key: str, since: datetime | None = None) -> bool:
        """Reports whether the delay after a failure at `since` has not passed yet.

        By default `since` is the time at which the last failure was recorded.
        """
        with self._lock:
            entry = self._entries.get(key)
            if entry is None:
                return False
            began = since.timestamp() if since else entry.last_update
            return self._policy.remaining(entry, began, self._now()) > 0

    def next(self, key: str, since: datetime | None = None) -> None:
        """Records a failure at `since`, by default now."""
        with self._lock:
            now = self._now()
            began = since.timestamp() if since else now
            self._entries[key] = self._policy.next(self._entries.get(key), began, now)

    def gc(self) -> None:
        """Removes the entries that have expired."""
        now = self._now()
        with self._lock:
            for key, entry in list(self._entries.items()):
                if self._policy.is_expired(entry, now):
                    del self._entries[key]

    def _now(self) -> float:
        return self._clock.now().timestamp()
