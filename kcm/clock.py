"""The clock that components get.

Code uses a `Clock` and never calls `time` or `datetime.now` itself, so that a test can set the time
(see `kcm.testing.clock`). Times that several hosts share, those of leases, delays and rate limits,
do not come from here: the Lua scripts read the clock of Redis.
"""

from __future__ import annotations

import threading
import time
from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    """The time, for one component, and waiting with a timeout."""

    def now(self) -> datetime:
        """Returns the time of the wall clock, aware and in UTC."""
        ...

    def monotonic(self) -> float:
        """Returns seconds on a clock that never goes back. Only differences of its values are
        meaningful.
        """
        ...

    def wait(self, event: threading.Event, timeout: float) -> bool:
        """Waits up to `timeout` seconds for `event`, and reports whether it is set."""
        ...


class RealClock:
    """The clocks of the machine."""

    def now(self) -> datetime:
        return datetime.now(UTC)

    def monotonic(self) -> float:
        return time.monotonic()

    def wait(self, event: threading.Event, timeout: float) -> bool:
        return event.wait(timeout)
