"""The clock of a control plane: the time goes on as usual, or stands still until it is moved.

Guarantees: what reads the time in the control plane reads this clock's, and the scripts in Redis
have the same time to the millisecond. `monotonic` and `wait` are those of the machine, since they
measure and limit real work, such as a request.
"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass
from datetime import UTC, datetime


@dataclass(frozen=True)
class _Setting:
    """Where the time stands, or how far it is ahead of the machine's. Times are in seconds."""

    stands_at: float | None = None
    ahead: float = 0.0


class PlaneClock:
    """A `kcm.clock.Clock` that one thread sets and any thread reads."""

    def __init__(self, stands_at: float | None = None) -> None:
        """With `stands_at`, in seconds since 1970, the time stands still there."""
        self._setting = _Setting(stands_at)

    def now(self) -> datetime:
        return datetime.fromtimestamp(self.moment(), UTC)

    def monotonic(self) -> float:
        return time.monotonic()

    def wait(self, event: threading.Event, timeout: float) -> bool:
        return event.wait(timeout)

    def moment(self) -> float:
        """Returns the time in seconds since 1970."""
        setting = self._setting
        if setting.stands_at is not None:
            return setting.stands_at
        return round(time.time() + setting.ahead, 6)

    @property
    def frozen(self) -> bool:
        """Whether the time stands still."""
        return self._setting.stands_at is not None

    @property
    def ahead(self) -> float:
        """How many seconds a time that goes on is ahead of the machine's."""
        return self._setting.ahead

    def stand_at(self, moment: float) -> None:
        """Makes the time stand still at `moment`."""
        self._setting = _Setting(moment, moment - time.time())

    def go_on(self) -> None:
        """Makes the time go on from where it stands."""
        if self.frozen:
            self._setting = _Setting(None, self.moment() - time.time())
