"""Calls of greenlets share one connection to Redis, and are sent without waiting for each other.

Guarantees: each caller gets its own replies, in order. If the connection fails, or a reply does not
arrive in time, every waiting call is sent again in a thread, over the driver's own connections and
with the driver's retries; call ids make that safe, as for every repeated call. Calls from threads
always use the driver's connections.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, cast

import hiredis
import redis
import structlog
from redis.connection import Connection, DefaultParser, UnixDomainSocketConnection

from kcm.redisio import greenlets
from kcm.redisio.commands import Argument, Command, Reply, pack
from kcm.redisio.connection import RedisIO
from kcm.redisio.quick import LinkError
from kcm.settings import Settings

log = structlog.get_logger("kcm.redis")

LONG_REPLY = 64 * 1024  # bytes; handling a longer reply would stop the event loop for too long
RETRY_AFTER = 1.0  # seconds after a failed connection until the next attempt


@dataclass(slots=True)
class _Exchange:
    """Commands that were sent, and their replies so far."""

    count: int
    future: asyncio.Future[list[Reply]]
    deadline: float  # on the loop's clock
    replies: list[Reply] = field(default_factory=list)


class _Link(asyncio.Protocol):
    """One connection to Redis. It closes itself if a reply takes longer than `timeout` seconds."""

    def __init__(self, timeout: float) -> None:
        self._loop = asyncio.get_running_loop()
        self._timeout = timeout
        self._reader = hiredis.Reader(replyError=DefaultParser.parse_error)
        self._waiting: deque[_Exchange] = deque()
        self._unsent: list[bytes] = []  # commands that this turn of the loop sends together
        self._transport: asyncio.Transport | None = None
        self._watchdog: asyncio.TimerHandle | None = None
        self._lost: asyncio.Future[None] = self._loop.create_future()

    @property
    def is_open(self) -> bool:
        """Whether commands can be sent."""
        return self._transport is not None and not self._transport.is_closing()

    def send(self, packed: bytes, count: int) -> asyncio.Future[list[Reply]]:
        """Sends `count` packed commands. The returned future has their replies, or raises
        LinkError.

        Raises LinkError if the connection is closed.
        """
        if self._transport is None or self._transport.is_closing():
            raise LinkError("closed before the command was sent")
        future: asyncio.Future[list[Reply]] = self._loop.create_future()
        if not self._waiting:
            self._transport.write(packed)
        else:
            if not self._unsent:
                self._loop.call_soon(self._send_rest)
            self._unsent.append(packed)
        self._waiting.append(_Exchange(count, future, self._loop.time() + self._timeout))
        if self._watchdog is None:
            self._watchdog = self._loop.call_later(self._timeout, self._check_deadline)
        return future

    def _send_rest(self) -> None:
        packed, self._unsent = b"".join(self._unsent), []
        if self._transport is not None:
            self._transport.write(packed)

    def close(self) -> None:
        """Closes the connection. Calls that wait for replies raise LinkError."""
        if self._transport is not None and not self._loop.is_closed():
            self._transport.abort()

    def drop(self) -> None:
        """Closes the connection. Any thread may call it."""
        if self._loop.is_closed():
            return
        if greenlets.is_running():  # in the loop's thread: the next call must not find it open
            self.close()
        else:
            self._loop.call_soon_threadsafe(self.close)

    async def end_with_loop(self) -> None:
        """Waits until the connection is closed. Closes it if the task is cancelled, as at the
        loop's end.
        """
        try:
            await self._lost
        finally:
            self.close()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        try:
            self._reader.feed(data)
            while (reply := self._reader.gets()) is not False:
                self._deliver(reply)
        except hiredis.ProtocolError as error:
            log.warning("Redis sent an invalid reply", error=str(error))
            self.close()

    def _deliver(self, reply: Reply) -> None:
        if not self._waiting:  # such as the error that the server has too many clients
            log.warning("Redis sent an unexpected reply", reply=str(reply))
            self.close()
            return
        exchange = self._waiting[0]
        exchange.replies.append(reply)
        if len(exchange.replies) == exchange.count:
            self._waiting.popleft()
            if not exchange.future.done():
                exchange.future.set_result(exchange.replies)

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        if self._watchdog is not None:
            self._watchdog.cancel()
        if not self._lost.done():
            self._lost.set_result(None)
        while self._waiting:
            future = self._waiting.popleft().future
            if not future.done():
                future.set_exception(LinkError(str(exc or "closed")))

    def _check_deadline(self) -> None:
        self._watchdog = None
        if not self._waiting:
            return
        left = self._waiting[0].deadline - self._loop.time()
        if left <= 0:
            self.close()
        else:
            self._watchdog = self._loop.call_later(left, self._check_deadline)


class PipelinedIO(RedisIO):
    """A RedisIO whose calls from greenlets share one connection. Use it in one event loop only."""

    def __init__(self, settings: Settings | None = None, *, name: str = "") -> None:
        super().__init__(settings, name=name)
        self._link: _Link | None = None
        self._connecting: asyncio.Task[_Link] | None = None
        self._ending: asyncio.Task[None] | None = None
        self._connect_at = 0.0  # the time of the next attempt, on the loop's clock
        self.links.add_other(self)

    def call(self, name: str, *args: Argument, call_id: str | None = None) -> list[str]:
        if call_id != "":
            greenlets.mark_written()
        return super().call(name, *args, call_id=call_id)

    def attach(self) -> None:
        greenlets.block(super().attach)

    def confirm(self, term: str) -> None:
        if self._replication is not None:
            greenlets.block(partial(super().confirm, term))

    def scan(self, pattern: str) -> Iterator[str]:
        if not greenlets.is_running():
            return super().scan(pattern)
        scan = super().scan
        return iter(greenlets.block(lambda: list(scan(pattern))))

    def info(self, section: str) -> dict[str, Any]:
        return greenlets.block(partial(super().info, section))

    def drop(self) -> None:
        super().drop()
        if self._link is not None:
            self._link.drop()

    def close(self) -> None:
        """Closes all connections. Call it in the event loop, or after the loop has ended."""
        if self._link is not None:
            self._link.close()
        super().close()

    def _drive(self, *command: Argument) -> Reply:
        return greenlets.block(partial(super()._drive, *command))

    def _drive_all(self, commands: Sequence[Command], *, at_once: bool = False) -> list[Reply]:
        return greenlets.block(partial(super()._drive_all, commands, at_once=at_once))

    def _exchange(self, commands: Sequence[Command]) -> list[Reply]:
        if not greenlets.is_running():
            return super()._exchange(commands)
        packed = b"".join(map(pack, commands))
        link = self._link
        if link is None or not link.is_open:
            link = greenlets.wait_for(self._open_link())
        replies = greenlets.wait_for(link.send(packed, len(commands)))
        for reply in replies:
            if isinstance(reply, redis.ConnectionError):
                # Such as LOADING: the driver retries the command or connects again.
                raise LinkError(str(reply))
        greenlets.raise_if_long(sum(map(_size, replies)), LONG_REPLY)
        return replies

    async def _open_link(self) -> _Link:
        """Returns the open link. Concurrent callers wait for the same attempt."""
        loop = asyncio.get_running_loop()
        if self._connecting is None or self._connecting.done():
            if loop.time() < self._connect_at:
                raise LinkError("the last attempt failed")
            self._connecting = loop.create_task(self._connect())
        return await asyncio.shield(self._connecting)

    async def _connect(self) -> _Link:
        """Opens the link. Raises LinkError, also if no caller waits for it any more."""
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(self.settings.connect_timeout):
                link = await self._dial(partial(_Link, self.settings.socket_timeout))
                await self._greet(link)
        except (OSError, TimeoutError, LinkError, redis.RedisError) as error:
            self._connect_at = loop.time() + RETRY_AFTER
            raise LinkError(str(error)) from error
        self._link = link
        self._ending = loop.create_task(link.end_with_loop())
        return link

    async def _greet(self, link: _Link) -> None:
        """Sends the first commands of a new connection, and closes the connection if that fails."""
        try:
            for reply in await link.send(*self._greeting()):
                if isinstance(reply, Exception):
                    raise reply
        except BaseException:
            link.close()
            raise

    async def _dial(self, new_link: Callable[[], _Link]) -> _Link:
        """Opens a connection to the driver's address. Raises LinkError if it needs TLS or
        Sentinel.
        """
        loop, pool = asyncio.get_running_loop(), self._client.connection_pool
        options = pool.connection_kwargs
        if pool.connection_class is UnixDomainSocketConnection:
            _, link = await loop.create_unix_connection(new_link, options["path"])
        elif pool.connection_class is Connection:
            host, port = options.get("host", "localhost"), options.get("port", 6379)
            _, link = await loop.create_connection(new_link, host, port)
        else:
            raise LinkError("TLS and Sentinel are left to the driver")
        return link

    def _greeting(self) -> tuple[bytes, int]:
        """Returns the packed first commands of a new connection, and their number."""
        options = self._client.connection_pool.connection_kwargs
        commands: list[Command] = []
        if options.get("password"):
            user = [options["username"]] if options.get("username") else []
            commands.append(["AUTH", *user, options["password"]])
        commands.append(["CLIENT", "SETNAME", self.name or "kcm"])
        if options.get("db"):
            commands.append(["SELECT", options["db"]])
        return b"".join(map(pack, commands)), len(commands)


def _size(reply: Reply) -> int:
    """Returns the number of bytes in a reply."""
    if isinstance(reply, bytes):
        return len(reply)
    return sum(map(_size, reply)) if isinstance(reply, list) else 0
