"""What acts at moments of the clock, for whoever makes time pass."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import datetime

# Does what is due at a moment, and returns the moment at which there is more to do, if there is.
Step = Callable[[datetime], datetime | None]


class Agenda:
    """Steps that are called as time passes. Any thread may use it; one step runs at a time."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._steps: list[Step] = []

    def add(self, step: Step) -> None:
        """Adds a step, which is due at once."""
        with self._lock:
            self._steps.append(step)

    def remove(self, step: Step) -> None:
        """Removes a step. It does not run any more when this returns."""
        with self._lock:
            if step in self._steps:
                self._steps.remove(step)

    def step(self, now: datetime) -> datetime | None:
        """Calls all steps, and returns the earliest moment at which there is more to do."""
        with self._lock:
            times = [step(now) for step in list(self._steps)]
        return min((time for time in times if time is not None), default=None)
