"""Back-off: each failure waits twice as long as the one before.

Source: client-go util/flowcontrol/backoff.go, Kubernetes 1.33.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from datetime import datetime

from kcm.clock import Clock


@dataclass(frozen=True, slots=True)
class Wait:
    """What the last failure brought about: `delay` seconds, noted at `at` (since 1970)."""

    delay: float
    at: float


@dataclass(frozen=True, slots=True)
class Rule:
    """How long failures wait: pure. Times are seconds since 1970, `since` is a failure's. What
    has not failed for twice the longest wait starts over."""

    first: float = 10.0
    longest: float = 300.0

    def left(self, wait: Wait | None, since: float, now: float) -> float:
        """Seconds that are left of the wait that began with a failure at `since`."""
        if wait is None or self.is_over(wait, since):
            return 0.0
        return max(since + wait.delay - now, 0.0)

    def after(self, wait: Wait | None, since: float, now: float) -> Wait:
        """The wait for the next failure, once that of a failure at `since` is over."""
        if wait is None or self.is_over(wait, since):
            return Wait(self.first, now)
        return Wait(min(wait.delay * 2, self.longest), now)

    def is_over(self, wait: Wait, at: float) -> bool:
        """Whether nothing is left to remember."""
        return at - wait.at > 2 * self.longest


class Backoff:
    """The waits by key; thread-safe."""

    def __init__(self, clock: Clock, first: float = 10.0, longest: float = 300.0) -> None:
        self._clock = clock
        self._rule = Rule(first, longest)
        self._lock = threading.Lock()
        self._waits: dict[str, Wait] = {}

    def delay(self, key: str) -> float:
        """The wait that the last failure brought about."""
        with self._lock:
            wait = self._waits.get(key)
            return wait.delay if wait else 0.0

    def is_waiting(self, key: str, since: datetime | None = None) -> bool:
        """Whether the wait that began with a failure at `since` (default: the last one that was
        noted) is not over."""
        with self._lock:
            wait = self._waits.get(key)
            if wait is None:
                return False
            began = since.timestamp() if since else wait.at
            return self._rule.left(wait, began, self._now()) > 0

    def next(self, key: str, since: datetime | None = None) -> None:
        """Note a failure at `since` (default: now)."""
        with self._lock:
            now = self._now()
            began = since.timestamp() if since else now
            self._waits[key] = self._rule.after(self._waits.get(key), began, now)

    def gc(self) -> None:
        """Forget keys that have been quiet for long."""
        now = self._now()
        with self._lock:
            for key in [k for k, wait in self._waits.items() if self._rule.is_over(wait, now)]:
                del self._waits[key]

    def _now(self) -> float:
        return self._clock.now().timestamp()
