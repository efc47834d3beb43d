"""Back-off per key: each failure waits twice as long as the one before.

Source: client-go util/flowcontrol/backoff.go, Kubernetes 1.33.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from datetime import datetime

from kcm.clock import Clock


@dataclass
class _Entry:
    delay: float
    at: datetime


class Backoff:
    """Thread-safe. Times are seconds. A key without failures for twice the longest wait starts
    over."""

    def __init__(self, clock: Clock, first: float = 10.0, longest: float = 300.0) -> None:
        self._clock = clock
        self._first = first
        self._longest = longest
        self._lock = threading.Lock()
        self._entries: dict[str, _Entry] = {}

    def delay(self, key: str) -> float:
        """The wait that the last failure brought about."""
        with self._lock:
            entry = self._entries.get(key)
            return entry.delay if entry else 0.0

    def is_waiting(self, key: str, since: datetime) -> bool:
        """Whether the wait that began with a failure at `since` is not over."""
        with self._lock:
            entry = self._entries.get(key)
            if entry is None or self._expired(entry, since):
                return False
            return (self._clock.now() - since).total_seconds() < entry.delay

    def next(self, key: str, since: datetime) -> None:
        """Note a failure at `since`."""
        with self._lock:
            entry = self._entries.get(key)
            if entry is None or self._expired(entry, since):
                delay = self._first
            else:
                delay = min(entry.delay * 2, self._longest)
            self._entries[key] = _Entry(delay, self._clock.now())

    def forget(self, key: str) -> None:
        with self._lock:
            self._entries.pop(key, None)

    def gc(self) -> None:
        """Forget keys that have been quiet for long."""
        now = self._clock.now()
        with self._lock:
            for key in [k for k, entry in self._entries.items() if self._expired(entry, now)]:
                del self._entries[key]

    def _expired(self, entry: _Entry, at: datetime) -> bool:
        return (at - entry.at).total_seconds() > 2 * self._longest
