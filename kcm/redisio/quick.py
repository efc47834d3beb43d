"""Sends commands over the driver's connections, past its client.

For each command the driver's client takes a connection out of a pool under a lock, looks whether
anything has arrived on it, counts it for its metrics and wraps the call in a retry. That is half of
the CPU that a call takes.

Guarantees: a connection is used by one thread at a time, and never again after a command on it has
failed. Nothing is sent twice: after a LinkError it is unknown whether the server carried the
commands out, and the caller sends them again with the driver, or does not.
"""

from __future__ import annotations

import os
from collections import deque
from typing import Any

import redis

from kcm.redisio.commands import Reply


class LinkError(Exception):
    """Raised when a connection fails before a reply has arrived. `__cause__` is the driver's."""


class QuickPool(redis.ConnectionPool):
    """A pool of the driver's connections, some of which are kept at hand for `exchange`.

    For the driver, those are in use.
    """

    def reset(self) -> None:  # the driver calls it after a fork, and first of all
        self._at_hand: deque[Any] = deque()
        super().reset()

    def exchange(self, packed: bytes, count: int) -> list[Reply]:
        """Sends `count` packed commands, and returns the replies, of which some may be exceptions.

        Raises: LinkError, and redis.ConnectionError if no connection can be opened.
        """
        connection = self.take()
        try:
            connection.send_packed_command([packed], check_health=False)
            replies = [_read(connection) for _ in range(count)]
        except BaseException as error:
            connection.disconnect()
            self.release(connection)
            if isinstance(error, redis.ConnectionError | redis.TimeoutError | OSError):
                raise LinkError(str(error)) from error
            raise
        self.put_back(connection)
        return replies

    def take(self) -> Any:
        """Returns a connection that no other thread uses. It may have been closed by the server.

        Raises: redis.ConnectionError.
        """
        if self.pid == os.getpid():
            try:
                return self._at_hand.pop()
            except IndexError:  # all of them are in use
                pass
        return self.get_connection()

    def put_back(self, connection: Any) -> None:
        """Keeps a connection at hand, unless it was to be closed once it is free."""
        if connection.should_reconnect():
            self.release(connection)
        else:
            self._at_hand.append(connection)

    def disconnect(self, inuse_connections: bool = True) -> None:
        while self._at_hand:
            self.release(self._at_hand.pop())
        super().disconnect(inuse_connections)


def _read(connection: Any) -> Reply:
    """Returns the next reply, or the error that it is."""
    try:
        return connection.read_response()
    except redis.ResponseError as error:
        return error
