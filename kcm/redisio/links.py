"""What the clients share that a process has of one server: their connections fail together."""

from __future__ import annotations

import weakref
from typing import Any, Self

import redis


class Links:
    """The connections of a process to one server. Thread-safe."""

    def __init__(self) -> None:
        # A pool is removed with its client.
        self._pools: weakref.WeakSet[redis.ConnectionPool] = weakref.WeakSet()
        self._told: set[str] = set()

    def __deepcopy__(self, memo: Any) -> Self:
        return self  # the driver copies the retry of each connection, which has it

    def add(self, pool: redis.ConnectionPool) -> None:
        """Adds the connections of a client."""
        self._pools.add(pool)

    def drop_idle(self) -> None:
        """Closes all idle connections.

        If one connection has silently died, the others have as well. Otherwise each of them would
        cost a timeout of its own when it is used next.
        """
        for pool in list(self._pools):
            pool.disconnect(inuse_connections=False)

    def is_told_first(self, data_id: str) -> bool:
        """Reports whether nothing was logged yet about a store that was emptied. A process has many
        clients, and logs once.
        """
        if data_id in self._told:
            return False
        self._told.add(data_id)
        return True
