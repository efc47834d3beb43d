"""A heap of timers by key."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

K = TypeVar("K")


class Timers(Generic[K]):
    """Keys, each with the one time at which it is due."""

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, K]] = []
        self._due: dict[K, tuple[float, int]] = {}
        self._count = 0

    def __len__(self) -> int:
        return len(self._due)

    def set(self, key: K, due: float) -> None:
        """Makes the key due at that time, and not at an earlier set one.

        Infinity removes the key.
        """
        if due == float("inf"):
            self._due.pop(key, None)
            return
        present = self._due.get(key)
        if present is not None and present[0] == due:
            return
        self._count += 1
        self._due[key] = (due, self._count)
        heapq.heappush(self._heap, (due, self._count, key))

    def cancel(self, key: K) -> None:
        """Removes the key, if it is there."""
        self._due.pop(key, None)

    def next(self) -> float:
        """Returns when the first key is due, infinity if there are no keys."""
        while self._heap:
            due, count, key = self._heap[0]
            if self._due.get(key) == (due, count):
                return due
            heapq.heappop(self._heap)
        return float("inf")

    def next_except(self, excluded: Callable[[K], bool]) -> float:
        """Returns when the first key is due that is not excluded, infinity if there is none."""
        times = (due for key, (due, _) in self._due.items() if not excluded(key))
        return min(times, default=float("inf"))

    def pop_due(self, now: float) -> Iterator[K]:
        """Removes and yields the keys that are due at `now`, the earliest first."""
        while self.next() <= now:
            _, _, key = heapq.heappop(self._heap)
            del self._due[key]
            yield key
