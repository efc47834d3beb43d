"""Back-off: each failure makes the next attempt wait twice as long as the one before.

Source: client-go util/flowcontrol/backoff.go, Kubernetes 1.33.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from datetime import datetime

from kcm.clock import Clock


@dataclass(frozen=True, slots=True)
class BackoffEntry:
    """The delay in seconds after the last failure, and when it was recorded (since 1970)."""

    delay: float
    last_update: float


@dataclass(frozen=True, slots=True)
class BackoffPolicy:
    """Computes delays: pure functions.

    Delays are seconds, moments are seconds since 1970. A failure at `since` that comes later
    than twice the maximum after the last update begins anew.
    """

    initial: float = 10.0
    maximum: float = 300.0

    def remaining(self, entry: BackoffEntry | None, since: float, now: float) -> float:
        """Returns the seconds to wait still, after a failure at `since`."""
        if entry is None or self.is_expired(entry, since):
            return 0.0
        return max(since + entry.delay - now, 0.0)

    def next(self, entry: BackoffEntry | None, since: float, now: float) -> BackoffEntry:
        """Returns the entry for the next failure, after a failure at `since`."""
        if entry is None or self.is_expired(entry, since):
            return BackoffEntry(self.initial, now)
        return BackoffEntry(min(entry.delay * 2, self.maximum), now)

    def is_expired(self, entry: BackoffEntry, at: float) -> bool:
        """Reports whether the entry no longer counts at a moment."""
        return at - entry.last_update > 2 * self.maximum


class Backoff:
    """The back-off of many keys. Thread-safe."""

    def __init__(self, clock: Clock, policy: BackoffPolicy | None = None) -> None:
        self._clock = clock
        self._policy = policy or BackoffPolicy()
        self._lock = threading.Lock()
        self._entries: dict[str, BackoffEntry] = {}

    def delay(self, key: str) -> float:
        """Returns the delay in seconds after the key's last failure; 0 if there was none."""
        with self._lock:
            entry = self._entries.get(key)
            return entry.delay if entry else 0.0

    def is_in_backoff(self, key: str, since: datetime | None = None) -> bool:
        """Reports whether the delay after a failure at `since` is not over.

        `since` is by default the moment at which the last failure was recorded.
        """
        with self._lock:
            entry = self._entries.get(key)
            if entry is None:
                return False
            began = since.timestamp() if since else entry.last_update
            return self._policy.remaining(entry, began, self._now()) > 0

    def next(self, key: str, since: datetime | None = None) -> None:
        """Records a failure at `since`, which is now by default."""
        with self._lock:
            now = self._now()
            began = since.timestamp() if since else now
            self._entries[key] = self._policy.next(self._entries.get(key), began, now)

    def gc(self) -> None:
        """Forgets the keys whose entries have expired."""
        now = self._now()
        with self._lock:
            for key, entry in list(self._entries.items()):
                if self._policy.is_expired(entry, now):
                    del self._entries[key]

    def _now(self) -> float:
        return self._clock.now().timestamp()
