"""Channels: several queues with one reader, who takes from them fairly.

Guarantees: items of one channel are taken in order; of the channels that have items each is equally
likely to be next, so that none starves, as with Go's select.
"""

from __future__ import annotations

import random
import threading
from collections import deque
from typing import Any

from kcm.clock import Clock


class Channel:
    """One queue. Any thread may write to it."""

    def __init__(self, name: str, capacity: int, ready: threading.Condition) -> None:
        self.name = name
        self._capacity = capacity
        self._ready = ready
        self.items: deque[Any] = deque()

    def offer(self, item: Any) -> bool:
        """Adds an item; returns False, without adding it, if the channel is full."""
        with self._ready:
            if self._capacity and len(self.items) >= self._capacity:
                return False
            self.items.append(item)
            self._ready.notify_all()
            return True


class Channels:
    """The channels of one reader."""

    def __init__(self, clock: Clock, rng: random.Random | None = None) -> None:
        self._clock = clock
        self._rng = rng or random.Random()
        self._ready = threading.Condition()
        self._channels: dict[str, Channel] = {}
        self._closed = False

    def channel(self, name: str, capacity: int = 0) -> Channel:
        """Returns the channel with that name, creating it first if needed; a capacity of 0 is no
        limit.
        """
        with self._ready:
            if name not in self._channels:
                self._channels[name] = Channel(name, capacity, self._ready)
            return self._channels[name]

    def close(self) -> None:
        """Wakes the reader for good: `select` returns None at once from now on."""
        with self._ready:
            self._closed = True
            self._ready.notify_all()

    @property
    def closed(self) -> bool:
        return self._closed

    def select(self, timeout: float) -> tuple[str, Any] | None:
        """Takes the oldest item of a channel; returns it with the channel's name.

        Returns None if there was none for `timeout` seconds.
        """
        with self._ready:
            if not self._closed and not self._non_empty():
                self._ready.wait(timeout)
            candidates = [] if self._closed else self._non_empty()
            if not candidates:
                return None
            chosen = self._rng.choice(candidates)
            return chosen.name, chosen.items.popleft()

    def _non_empty(self) -> list[Channel]:
        return [channel for channel in self._channels.values() if channel.items]
