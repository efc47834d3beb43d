"""What a sentinel announces of a service's master.

A sentinel that leads a failover announces when it has told a replica to be the master, which is a
second or more before it names it, and several before it tells the former master. Connections that
follow the first announcement lose least.

Source: src/sentinel.c of Redis 7.0, `sentinelFailoverSendSlaveOfNoOne`, `sentinelEvent` and
`sentinelResetMasterAndChangeAddress`.
"""

from __future__ import annotations

import socket
from typing import Any

import redis

from kcm.redisio import sentinel
from kcm.redisio.links import Address, Links
from kcm.settings import Settings

_TOLD = "+failover-state-wait-promotion"
_NAMED = "+switch-master"
_GIVEN_UP = "-failover-abort-slave-timeout"
CHANNELS = (_TOLD, _NAMED, _GIVEN_UP)


def parse_announcement(channel: str, text: str, service: str) -> Address | None:
    """Returns the address of the new master, None if that is not told or not this service's.

    The forms are `slave NAME HOST PORT @ SERVICE ...` for a replica that was told,
    and `SERVICE HOST PORT NEW-HOST NEW-PORT`.
    """
    words = text.split()
    try:
        if channel == _NAMED and words[0] == service:
            return words[3], int(words[4])
        if channel == _TOLD and words[0] == "slave" and words[5] == service:
            return words[2], int(words[3])
    except (IndexError, ValueError):
        return None
    return None


def is_given_up(channel: str, text: str, service: str) -> bool:
    """Reports whether a failover of the service was given up, so that the master stays."""
    return channel == _GIVEN_UP and text.split()[1:2] == [service]


def follow(links: Links, service: str, channel: str, text: str) -> Address | None:
    """Leads new connections where an announcement says. Returns the address of the master if it is
    another than the one that was announced before.
    """
    if is_given_up(channel, text, service):
        links.announce_master(None)
        return None
    address = parse_announcement(channel, text, service)
    if address is None or address == links.announced_master():
        return None
    links.announce_master(address)
    return address


class Announcements:
    """Subscribes to one sentinel. For one thread."""

    def __init__(self, settings: Settings, node: Address) -> None:
        url = sentinel.parse(settings.effective_redis_url)
        options = url.sentinel_options(
            {
                "socket_timeout": settings.socket_timeout,
                "socket_connect_timeout": settings.connect_timeout,
            }
        )
        self.service = url.service
        # The system tests the connection, as the driver does before it sends: this one only reads.
        self._client = redis.Redis(*node, **options, socket_keepalive=True)
        self._subscription: Any = None

    def open(self) -> None:
        """Connects, if it is not connected. Raises OSError if the sentinel is away."""
        if self._subscription is not None:
            return
        subscription = self._client.pubsub()  # type: ignore[no-untyped-call] # the driver's gap
        try:
            subscription.subscribe(*CHANNELS)
        except redis.RedisError as error:
            raise OSError(str(error)) from error
        self._subscription = subscription

    def fileno(self) -> int:
        """Returns the descriptor of the connection, for a loop that waits for many."""
        sock: socket.socket = self._subscription.connection._sock  # the driver does not tell it
        return sock.fileno()

    def read(self, patience: float) -> tuple[str, str] | None:
        """Returns the next announcement as channel and text, None if there is none in `patience`
        seconds. The first call connects. Raises OSError if the sentinel is away.
        """
        self.open()
        try:
            message = self._subscription.get_message(timeout=patience)
            while message is not None and message["type"] != "message":  # the subscription's reply
                message = self._subscription.get_message(timeout=0.0)
        except redis.RedisError as error:
            self.close()
            raise OSError(str(error)) from error
        if message is None:
            return None
        return message["channel"].decode(), message["data"].decode("utf-8", "replace")

    def close(self) -> None:
        """Closes the connection. The next read opens another."""
        if self._subscription is not None:
            self._subscription.close()
        self._subscription = None
