"""What the clients share that a process has of one server: their connections fail together."""

from __future__ import annotations

import math
import socket
import threading
import time
import weakref
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Protocol, Self

import redis

from kcm.redisio.replication import ReplicationWait

Address = tuple[str, int]  # host and port
# Seconds for which an announced master counts. By then all sentinels name it: they tell each other
# every two seconds.
ANNOUNCED = 10.0
PROMOTION = 0.5  # seconds that a replica may take to become the master


class OtherLink(Protocol):
    """A connection that is in no pool of the driver."""

    def drop(self) -> None:
        """Closes it. Any thread may call it."""
        ...


class Links:
    """The connections of a process to one server. Thread-safe."""

    def __init__(self) -> None:
        # A pool is removed with its client.
        self._pools: weakref.WeakSet[redis.ConnectionPool] = weakref.WeakSet()
        self._others: weakref.WeakSet[OtherLink] = weakref.WeakSet()
        self._epoch = ""
        self._dropped_at = -math.inf
        self._lock = threading.Lock()
        self._replication: ReplicationWait | None = None
        self._announced: tuple[Address | None, float] = (None, 0.0)  # the master, and until when
        self._told: set[str] = set()

    def __deepcopy__(self, memo: Any) -> Self:
        return self  # the driver copies the retry of each connection, which has it

    def add(self, pool: redis.ConnectionPool) -> None:
        """Adds the connections of a client."""
        self._pools.add(pool)

    def add_other(self, link: OtherLink) -> None:
        """Adds a connection that is in no pool. It is removed with its owner."""
        self._others.add(link)

    def share_replication_wait(self, build: Callable[[], ReplicationWait]) -> ReplicationWait:
        """Returns what the clients of the process wait for replicas with, built for the first."""
        with self._lock:
            if self._replication is None:
                self._replication = build()
            return self._replication

    def announce_master(self, address: Address | None) -> None:
        """Leads new connections to this address for some seconds, and closes all others. None leads
        them to wherever the sentinels say.

        A command that waits for its reply is sent again.
        """
        self._announced = (address, time.monotonic() + ANNOUNCED)
        for pool in list(self._pools):
            _shut_down(pool)
        self.drop()

    def doubt_announced_master(self) -> None:
        """Forgets the announced address, as its server is a replica, unless it was told to be the
        master just now.
        """
        address, until = self._announced
        if address is not None and time.monotonic() > until - ANNOUNCED + PROMOTION:
            self._announced = (None, 0.0)

    def announced_master(self) -> Address | None:
        """Returns the address that was announced some seconds ago at most."""
        address, until = self._announced
        return address if time.monotonic() < until else None

    def note_failure(self, error: BaseException | None) -> None:
        """Notes the driver's error of a connection, before its command is sent again."""
        if isinstance(error, redis.exceptions.TimeoutError):
            self.drop_idle()
        elif "is now a slave" in str(error):  # as the driver says for READONLY
            self.doubt_announced_master()

    def drop_idle(self) -> None:
        """Closes all idle connections.

        If one connection has silently died, the others have as well. Otherwise each of them would
        cost a timeout of its own when it is used next.
        """
        for pool in list(self._pools):
            pool.disconnect(inuse_connections=False)

    def drop(self, every: float = 0.0) -> None:
        """Closes all connections, those in use once their command has its reply. Does nothing if it
        did so less than `every` seconds ago.

        They may lead to a server that is no longer the master.
        """
        now = time.monotonic()
        if now - self._dropped_at < every:
            return
        self._dropped_at = now
        for pool in list(self._pools):
            pool.update_active_connections_for_reconnect()
        self.drop_idle()
        for other in list(self._others):
            other.drop()

    def enter_epoch(self, epoch: str) -> None:
        """Closes all connections if this epoch is another than the last one, since some may lead to
        the server of that one.
        """
        before, self._epoch = self._epoch, epoch
        if before not in ("", epoch):
            self.drop()

    def is_told_first(self, data_id: str) -> bool:
        """Reports whether nothing was logged yet about a store that was emptied. A process has many
        clients, and logs once.
        """
        if data_id in self._told:
            return False
        self._told.add(data_id)
        return True


def _shut_down(pool: redis.ConnectionPool) -> None:
    """Ends the connections of a pool that are in use, as their server would.

    The driver has no way to do so: it closes a connection in the thread that uses it.
    """
    with pool._get_pool_lock():  # type: ignore[no-untyped-call] # the driver's gap
        in_use: Any = pool._get_in_use_connections()  # type: ignore[no-untyped-call] # the driver's gap
        sockets = [connection._sock for connection in in_use]
    for each in sockets:
        if each is not None:
            with suppress(OSError):  # it was closed meanwhile
                socket.socket.shutdown(
                    each, socket.SHUT_RDWR
                )  # also one with TLS, which has its own
