"""Celery's connections to a Redis that Sentinel watches: they follow the announced master.

A worker waits for messages at the server to which it is connected, which a failover leaves without
messages until a sentinel closes its connections, some ten seconds later.
"""

from __future__ import annotations

from typing import Any

import structlog
from celery import bootsteps

from kcm.redisio import Links, sentinel
from kcm.redisio.announcements import Announcements, follow
from kcm.settings import Settings

log = structlog.get_logger("kcm.broker")

# The broker's connections of this process ask it for the master.
LINKS = Links()
AGAIN = 5.0  # seconds until a sentinel that is away is tried again
# Seconds, as nothing else happens in a worker's parent meanwhile.
CONNECT_TIMEOUT = 0.5


class FollowMasterStep(bootsteps.StartStopStep):  # type: ignore[misc] # celery has no types
    """Listens to all sentinels in the worker's event loop, and connects again when one announces
    another master.
    """

    requires = ("celery.worker.consumer.connection:Connection",)

    def __init__(self, consumer: Any, **_: Any) -> None:
        self._listeners: list[_Listener] = []

    def start(self, consumer: Any) -> None:
        settings = Settings()
        if consumer.hub is None or not sentinel.is_sentinel(settings.effective_redis_url):
            return
        quick = settings.model_copy(update={"connect_timeout": CONNECT_TIMEOUT})
        nodes = sentinel.parse(settings.effective_redis_url).nodes
        self._listeners = [_Listener(consumer.hub, Announcements(quick, node)) for node in nodes]
        for listener in self._listeners:
            listener.connect()

    def stop(self, consumer: Any) -> None:
        if self._listeners:  # answers to remote control have connections of their own
            consumer.app.pool.force_close_all(close_pool=False)
        for listener in self._listeners:
            listener.close()
        self._listeners = []


class _Listener:
    """One sentinel's announcements, in an event loop of Celery."""

    def __init__(self, hub: Any, announcements: Announcements) -> None:
        self._hub = hub
        self._announcements = announcements
        self._is_closed = False

    def connect(self) -> None:
        """Connects, now or as soon as the sentinel answers."""
        if self._is_closed:
            return
        try:
            self._announcements.open()
        except OSError:
            self._hub.call_later(AGAIN, self.connect)
        else:
            self._hub.add_reader(self._announcements.fileno(), self._read)

    def _read(self) -> None:
        """Reads what has come. Raises ConnectionError if another server is the master, after which
        Celery connects again.
        """
        descriptor = self._announcements.fileno()
        moved = None
        try:
            while (announcement := self._announcements.read(0)) is not None:
                moved = follow(LINKS, self._announcements.service, *announcement) or moved
        except OSError:
            self._hub.remove_reader(descriptor)
            self._hub.call_later(AGAIN, self.connect)
        if moved is not None:
            raise ConnectionError(f"another Redis is the master: {moved[0]}:{moved[1]}")

    def close(self) -> None:
        """Closes the connection."""
        self._is_closed = True
        self._announcements.close()
