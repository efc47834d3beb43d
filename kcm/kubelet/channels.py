"""Channels: several queues with one reader, who takes from them fairly.

Guarantees: what is taken from one channel comes in order; of the channels that
have something each is as likely to be next, so none starves (as Go's select).
"""

from __future__ import annotations

import random
import threading
from collections import deque
from typing import Any

from kcm.clock import Clock


class Channel:
    """One queue. Writers may be any threads."""

    def __init__(self, name: str, capacity: int, ready: threading.Condition) -> None:
        self.name = name
        self._capacity = capacity
        self._ready = ready
        self.items: deque[Any] = deque()

    def offer(self, item: Any) -> bool:
        """Add an item; False, and nothing done, when the channel is full."""
        with self._ready:
            if self._capacity and len(self.items) >= self._capacity:
                return False
            self.items.append(item)
            self._ready.notify_all()
            return True


class Channels:
    """The channels of one loop."""

    def __init__(self, clock: Clock, rng: random.Random | None = None) -> None:
        self._clock = clock
        self._rng = rng or random.Random()
        self._ready = threading.Condition()
        self._channels: dict[str, Channel] = {}
        self._closed = False

    def channel(self, name: str, capacity: int = 0) -> Channel:
        """The channel of that name, made at first; a capacity of 0 means no bound."""
        with self._ready:
            if name not in self._channels:
                self._channels[name] = Channel(name, capacity, self._ready)
            return self._channels[name]

    def close(self) -> None:
        """Wake the reader for good: `select` answers None at once from now on."""
        with self._ready:
            self._closed = True
            self._ready.notify_all()

    @property
    def closed(self) -> bool:
        return self._closed

    def select(self, timeout: float) -> tuple[str, Any] | None:
        """A channel's name and its oldest item; None after `timeout` seconds without any."""
        with self._ready:
            if not self._closed and not self._waiting():
                self._ready.wait(timeout)
            waiting = [] if self._closed else self._waiting()
            if not waiting:
                return None
            chosen = self._rng.choice(waiting)
            return chosen.name, chosen.items.popleft()

    def _waiting(self) -> list[Channel]:
        return [channel for channel in self._channels.values() if channel.items]
