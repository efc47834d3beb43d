"""Channels: several queues with one reader, which takes from them fairly.

Guarantees: items of one channel are taken in order. Each channel that has items is equally likely
to be next, as with Go's select, so none starves.
"""

from __future__ import annotations

import random
import threading
from collections import deque
from typing import Any

from kcm.clock import Clock


class Channel:
    """One queue of a `Channels`. Any thread may write to it. A capacity of 0 means no limit."""

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
    """The channels of one reader, which takes items with `select`."""

    def __init__(self, clock: Clock, rng: random.Random | None = None) -> None:
        self._clock = clock
        self._rng = rng or random.Random()
        self._ready = threading.Condition()
        self._channels: dict[str, Channel] = {}
        self._closed = False

    def channel(self, name: str, capacity: int = 0) -> Channel:
        """Returns the channel with that name. Creates it, with that capacity, if there is none.

        A capacity of 0 means no limit.
        """
        with self._ready:
            if name not in self._channels:
                self._channels[name] = Channel(name, capacity, self._ready)
            return self._channels[name]

    def close(self) -> None:
        """Closes the channels: from now on `select` returns None at once."""
        with self._ready:
            self._closed = True
            self._ready.notify_all()

    @property
    def closed(self) -> bool:
        return self._closed

    def select(self, timeout: float) -> tuple[str, Any] | None:
        """Takes the oldest item of one of the channels; returns the channel's name and the item.

        Waits up to `timeout` seconds for an item. Returns None if none came, or if the channels are
        closed.
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
