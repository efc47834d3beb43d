"""The clock that components are given.

Code takes a `Clock` and never calls `time` or `datetime.now` itself, so that a test steps
time by hand (see `kcm.testing.clock`). Times that several hosts share, those of leases,
delays and rate limits, do not come from here: the Lua scripts read the clock of Redis.
"""

from __future__ import annotations

import threading
import time
from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    """Tells a component the time, and waits for it."""

    def now(self) -> datetime:
        """Returns the time of the wall clock, aware and in UTC."""
        ...

    def monotonic(self) -> float:
        """Returns seconds on a clock that never goes back. Only differences mean anything."""
        ...

    def wait(self, event: threading.Event, timeout: float) -> bool:
        """Waits up to `timeout` seconds for `event`, and returns whether it is set."""
        ...


class RealClock:
    """Reads the clocks of the machine."""

    def now(self) -> datetime:
        return datetime.now(UTC)

    def monotonic(self) -> float:
        return time.monotonic()

    def wait(self, event: threading.Event, timeout: float) -> bool:
        return event.wait(timeout)
