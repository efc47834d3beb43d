"""Time as a parameter (DESIGN D11).

Code takes a `Clock` and never calls `time` or `datetime.now` itself, so a test
steps time by hand. Times shared by several hosts (leases, delays, limiters) do
not come from here: the Lua scripts read Redis' own clock.
"""

from __future__ import annotations

import threading
import time
from datetime import UTC, datetime, timedelta
from typing import Protocol


class Clock(Protocol):
    """Where a component reads the time and how it waits."""

    def now(self) -> datetime:
        """The wall clock, aware and in UTC."""
        ...

    def monotonic(self) -> float:
        """Seconds on a clock that never goes back; only differences mean anything."""
        ...

    def wait(self, event: threading.Event, timeout: float) -> bool:
        """Wait up to `timeout` seconds for `event`; true if it is set."""
        ...


class RealClock:
    """The machine's clocks."""

    def now(self) -> datetime:
        return datetime.now(UTC)

    def monotonic(self) -> float:
        return time.monotonic()

    def wait(self, event: threading.Event, timeout: float) -> bool:
        return event.wait(timeout)


class FakeClock:
    """A clock that moves only when stepped; waiting steps it."""

    def __init__(self, start: datetime = datetime(2026, 1, 1, tzinfo=UTC)) -> None:
        self._start = start
        self._elapsed = 0.0

    def now(self) -> datetime:
        return self._start + timedelta(seconds=self._elapsed)

    def monotonic(self) -> float:
        return self._elapsed

    def step(self, seconds: float) -> None:
        """Move both clocks forward by `seconds`."""
        self._elapsed += seconds

    def wait(self, event: threading.Event, timeout: float) -> bool:
        if not event.is_set():
            self.step(timeout)
        return event.is_set()
