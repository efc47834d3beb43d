"""What others do in the loop of a control plane, each at its time, such as chaos."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

Act = Callable[[datetime], datetime | None]  # gets the time, returns when to be called again

NEVER = float("inf")


class Agenda:
    """Functions that the loop calls when they are due. Only the loop's thread may use it."""

    def __init__(self) -> None:
        self._acts: dict[str, tuple[float, Act]] = {}

    def add(self, name: str, when: datetime, act: Act) -> None:
        """Has `act` called at `when`, and then whenever it asks for, until it returns None."""
        self._acts[name] = when.timestamp(), act

    def remove(self, name: str) -> None:
        """Removes a function, if it is there."""
        self._acts.pop(name, None)

    def due(self) -> dict[str, float]:
        """Returns when each function is due, in seconds since 1970."""
        return {name: when for name, (when, _) in self._acts.items()}

    def next_due(self) -> float:
        """Returns when the first function is due, infinity if there is none."""
        return min(self.due().values(), default=NEVER)

    def run_due(self, now: float) -> int:
        """Calls the functions that are due, and returns their number."""
        due = [(name, act) for name, (when, act) in self._acts.items() if when <= now]
        for name, act in due:
            again = act(datetime.fromtimestamp(now, UTC))
            if again is None:
                self._acts.pop(name, None)
            elif name in self._acts:
                self._acts[name] = again.timestamp(), act
        return len(due)
