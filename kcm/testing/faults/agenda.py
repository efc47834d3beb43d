"""What acts at moments of the clock, for whoever makes time pass."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import UTC, datetime

from kcm.loops import NEVER, Loop, Turn

# Does what is due at a moment, and returns the moment at which there is more to do, if there is.
Step = Callable[[datetime], datetime | None]


class Agenda(Loop):
    """Steps that are called as time passes. Any thread may use it; one step runs at a time."""

    def __init__(self, moment: Callable[[], float]) -> None:
        """`moment` returns the time in seconds since 1970."""
        super().__init__("kcm-agenda")
        self._moment = moment
        self._lock = threading.RLock()
        self._due: dict[Step, float] = {}  # in seconds since 1970

    def add(self, step: Step) -> None:
        """Adds a step, which is due at once."""
        with self._lock:
            self._due[step] = 0.0
        self.wake()

    def remove(self, step: Step) -> None:
        """Removes a step. It does not run any more when this returns."""
        with self._lock:
            self._due.pop(step, None)

    def turn(self, patience: float) -> Turn:
        """Calls the steps that are due."""
        now = self._moment()
        moment = datetime.fromtimestamp(now, UTC)
        with self._lock:
            due = [step for step, when in self._due.items() if when <= now]
            for step in due:
                again = step(moment)
                if step in self._due:
                    self._due[step] = NEVER if again is None else again.timestamp()
            return Turn(bool(due), min(self._due.values(), default=NEVER) - now)
