"""When something is due, by name. Work is found without a look at what is not due."""

from __future__ import annotations

import heapq
import itertools


class Timetable:
    """The moments at which names are due. A name that is due at 0 comes before all others."""

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, str]] = []
        self._at: dict[str, tuple[float, int]] = {}
        self._counter = itertools.count()

    def set(self, name: str, at: float) -> None:
        """Makes a name due at a moment, instead of the one that it had."""
        number = next(self._counter)
        self._at[name] = (at, number)
        heapq.heappush(self._heap, (at, number, name))
        if len(self._heap) > 2 * len(self._at) + 100:  # most of it is out of date
            self._heap = [(at, number, name) for name, (at, number) in self._at.items()]
            heapq.heapify(self._heap)

    def remove(self, name: str) -> None:
        """Makes a name due no longer."""
        self._at.pop(name, None)

    def pop(self, now: float) -> str | None:
        """Returns the name that has been due for the longest time, and removes it, or None."""
        if (at := self.next_at()) is None or at > now:
            return None
        _, _, name = heapq.heappop(self._heap)
        del self._at[name]
        return name

    def next_at(self) -> float | None:
        """Returns the moment at which the next name is due, None if there is none."""
        while self._heap:
            at, number, name = self._heap[0]
            if self._at.get(name) == (at, number):
                return at
            heapq.heappop(self._heap)
        return None
