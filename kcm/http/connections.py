"""Connections to servers, and those that are kept."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from urllib.parse import SplitResult

from kcm.http.faults import connection_fault
from kcm.http.limits import CONNECT_TIMEOUT, IDLE_TIMEOUT, MOST_IDLE
from kcm.http.messages import MOST_HEAD
from kcm.http.reachable import resolve


@dataclass(frozen=True)
class Server:
    """Where a request goes: over TLS if there is a context, otherwise in plain text.

    `name` is what the certificate must be for, by default the host. With `to_global`, the host must
    have global addresses only, see `reachable`.
    """

    host: str
    port: int
    tls: ssl.SSLContext | None = None
    name: str = ""
    to_global: bool = False

    @classmethod
    def of(cls, url: SplitResult, tls: ssl.SSLContext | None, *, to_global: bool = False) -> Server:
        """Returns the server of a URL. `tls` is used for https only. Raises ValueError."""
        secure = url.scheme == "https"
        port = url.port or (443 if secure else 80)
        return cls(url.hostname or "", port, tls if secure else None, to_global=to_global)

    @property
    def netloc(self) -> str:
        """The host and the port, as a URL has them."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


class Receiver:
    """Gets what comes over a connection."""

    def feed(self, data: bytes) -> None:
        """Takes bytes."""
        raise NotImplementedError

    def end(self) -> None:
        """Notes that nothing more comes."""
        raise NotImplementedError


class _Reader(asyncio.StreamReader):
    """A stream that tells when something comes although nothing was asked, or the end. What comes
    may be passed to a receiver instead.

    What came before the connection was reset can be read, unlike with asyncio: a server may answer
    and close without having read the whole request.
    """

    failure: Exception | None = None  # why the connection was lost
    unasked: Callable[[], None] | None = None  # set while the connection is not used
    left = 0  # bytes that have come and were not read
    _receiver: Receiver | None = None

    def pass_to(self, receiver: Receiver | None) -> None:
        """Passes what comes from now on to a receiver. With None, it is a stream again."""
        self._receiver = receiver

    def feed_data(self, data: bytes) -> None:  # type: ignore[override] # what asyncio passes
        if self._receiver is not None:
            self._receiver.feed(data)
            return
        super().feed_data(data)
        self.left += len(data)
        if self.unasked is not None:
            self.unasked()

    def set_exception(self, exc: Exception) -> None:
        self.failure = exc
        self.feed_eof()

    def feed_eof(self) -> None:
        super().feed_eof()
        if self._receiver is not None:
            self._receiver.end()
        if self.unasked is not None:
            self.unasked()


class Connection:
    """A connection as two streams."""

    def __init__(self, reader: _Reader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer
        self.kept_until = 0.0  # by the clock of the event loop

    @property
    def is_quiet(self) -> bool:
        """Whether nothing waits to be sent or read."""
        return not (self.reader.left or self.writer.transport.get_write_buffer_size())

    def close(self) -> None:
        """Closes the connection. What was not sent yet is dropped, as nobody may ever read it."""
        if not self.writer.is_closing() and self.writer.transport.get_write_buffer_size():
            self.abort()
        self.writer.close()

    def abort(self) -> None:
        """Closes the connection without a goodbye, for which TLS waits 30 seconds."""
        self.writer.transport.abort()


class Pool:
    """Keeps connections that are not used, of one event loop."""

    def __init__(self) -> None:
        self._idle: dict[Server, list[Connection]] = {}  # in the order in which they were kept
        self._expiring: asyncio.TimerHandle | None = None
        self._closed = False

    def take(self, server: Server) -> Connection | None:
        """Returns the connection that was used last, None if there is none."""
        idle = self._idle.get(server)
        if not idle:
            return None
        connection = idle.pop()
        connection.reader.unasked = None
        return connection

    def keep(self, server: Server, connection: Connection) -> None:
        """Keeps a connection for a while, unless the server closes it or too many are kept."""
        kept = len(self._idle.get(server, ()))
        if self._closed or kept >= MOST_IDLE or connection.writer.is_closing():
            connection.close()
            return
        loop = asyncio.get_running_loop()
        self._idle.setdefault(server, []).append(connection)
        connection.reader.unasked = partial(self._drop, server, connection)
        connection.kept_until = loop.time() + IDLE_TIMEOUT
        if self._expiring is None:  # one timer for all: each costs as much as all of the rest
            self._expiring = loop.call_at(connection.kept_until, self._drop_expired, loop)

    def close(self) -> None:
        """Closes the connections that are not used, and those in use when their responses end."""
        self._closed = True
        for server, idle in list(self._idle.items()):
            for connection in list(idle):
                self._drop(server, connection)
        if self._expiring is not None:
            self._expiring.cancel()

    def _drop_expired(self, loop: asyncio.AbstractEventLoop) -> None:
        now = loop.time()
        self._expiring = None
        for server, idle in list(self._idle.items()):
            for connection in [one for one in idle if one.kept_until <= now]:
                self._drop(server, connection)
            if not idle:
                del self._idle[server]
        if self._idle:
            soonest = min(idle[0].kept_until for idle in self._idle.values())
            self._expiring = loop.call_at(soonest, self._drop_expired, loop)

    def _drop(self, server: Server, connection: Connection) -> None:
        connection.reader.unasked = None
        self._idle[server].remove(connection)
        connection.close()


async def connect(server: Server) -> Connection:
    """Connects to the first of the host's addresses that answers. Raises BadRequest for one that is
    not allowed, and CallFailed.
    """
    try:
        async with asyncio.timeout(CONNECT_TIMEOUT):
            failure = OSError("the host has no address")
            for address in await resolve(server.host, server.port, to_global=server.to_global):
                try:
                    return await _open(server, address)
                except OSError as error:
                    failure = error
            raise failure
    except (OSError, ValueError) as error:
        raise connection_fault(error, server.netloc) from None


async def _open(server: Server, address: str) -> Connection:
    loop = asyncio.get_running_loop()
    reader = _Reader(MOST_HEAD, loop)
    protocol = asyncio.StreamReaderProtocol(reader, loop=loop)
    transport, _ = await loop.create_connection(
        lambda: protocol,
        address,
        server.port,
        ssl=server.tls,
        server_hostname=(server.name or server.host) if server.tls is not None else None,
    )
    return Connection(reader, asyncio.StreamWriter(transport, protocol, reader, loop))
