"""A fake clock, which tests step."""

from __future__ import annotations

import threading
from datetime import UTC, datetime, timedelta


class FakeClock:
    """A `kcm.clock.Clock` that moves only when it is stepped. `wait` steps it, too."""

    def __init__(self, start: datetime = datetime(2026, 1, 1, tzinfo=UTC)) -> None:
        self._start = start
        self._elapsed = 0.0

    def now(self) -> datetime:
        """Returns the start plus all steps, aware and in UTC."""
        return self._start + timedelta(seconds=self._elapsed)

    def monotonic(self) -> float:
        """Returns the sum of all steps in seconds."""
        return self._elapsed

    def step(self, seconds: float) -> None:
        """Moves the clock forward by `seconds`."""
        self._elapsed += seconds

    def wait(self, event: threading.Event, timeout: float) -> bool:
        """Steps the clock by `timeout` seconds unless `event` is set, and returns whether it is."""
        if not event.is_set():
            self.step(timeout)
        return event.is_set()
