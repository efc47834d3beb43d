"""One heap of moments for everything that waits."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from typing import Generic, TypeVar

K = TypeVar("K")


class Timers(Generic[K]):
    """Keys and when they are due. A key has one moment, the last one that was set."""

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, K]] = []
        self._due: dict[K, tuple[float, int]] = {}
        self._count = 0

    def __len__(self) -> int:
        return len(self._due)

    def set(self, key: K, due: float) -> None:
        """Makes the key due at a moment; forever removes it."""
        if due == float("inf"):
            self._due.pop(key, None)
            return
        known = self._due.get(key)
        if known is not None and known[0] == due:
            return
        self._count += 1
        self._due[key] = (due, self._count)
        heapq.heappush(self._heap, (due, self._count, key))

    def cancel(self, key: K) -> None:
        """Removes the key."""
        self._due.pop(key, None)

    def next(self) -> float:
        """Returns when the first key is due."""
        while self._heap:
            due, count, key = self._heap[0]
            if self._due.get(key) == (due, count):
                return due
            heapq.heappop(self._heap)
        return float("inf")

    def pop_due(self, now: float) -> Iterator[K]:
        """Takes the keys that are due, in their order."""
        while self.next() <= now:
            _, _, key = heapq.heappop(self._heap)
            del self._due[key]
            yield key
