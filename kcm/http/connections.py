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


class _Reader(asyncio.StreamReader):
    """A stream that tells when something comes although nothing was asked, or the end.

    What came before the connection was reset can be read, unlike with asyncio: a server may answer
    and close without having read the whole request.
    """

    failure: Exception | None = None  # why the connection was lost
    unasked: Callable[[], None] | None = None  # set while the connection is not used
    left = 0  # bytes that have come and were not read

    def feed_data(self, data: bytes) -> None:  # type: ignore[override] # what asyncio passes
        super().feed_data(data)
        self.left += len(data)
        if self.unasked is not None:
            self.unasked()

    def set_exception(self, exc: Exception) -> None:
        self.failure = exc
        self.feed_eof()

    def feed_eof(self) -> None:
        super().feed_eof()
        if self.unasked is not None:
            self.unasked()


class Connection:
    """A connection as two streams."""

    def __init__(self, reader: _Reader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer
        self.expiry: asyncio.TimerHandle | None = None

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
        self._idle: dict[Server, list[Connection]] = {}
        self._closed = False

    def take(self, server: Server) -> Connection | None:
        """Returns the connection that was used last, None if there is none."""
        idle = self._idle.get(server)
        if not idle:
            return None
        connection = idle[-1]
        self._forget(server, connection)
        return connection

    def keep(self, server: Server, connection: Connection) -> None:
        """Keeps a connection for a while, unless the server closes it or too many are kept."""
        idle = self._idle.get(server, [])
        if self._closed or len(idle) >= MOST_IDLE or connection.writer.is_closing():
            connection.close()
            return
        self._idle[server] = [*idle, connection]
        drop = partial(self._drop, server, connection)
        connection.reader.unasked = drop
        connection.expiry = asyncio.get_running_loop().call_later(IDLE_TIMEOUT, drop)

    def close(self) -> None:
        """Closes the connections that are not used, and those in use when their responses end."""
        self._closed = True
        for server, idle in list(self._idle.items()):
            for connection in list(idle):
                self._drop(server, connection)

    def _drop(self, server: Server, connection: Connection) -> None:
        self._forget(server, connection)
        connection.close()

    def _forget(self, server: Server, connection: Connection) -> None:
        connection.reader.unasked = None
        if connection.expiry is not None:
            connection.expiry.cancel()
        idle = self._idle[server]
        idle.remove(connection)
        if not idle:
            del self._idle[server]


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
