"""A transport for httpx over blocking sockets, whose responses a parser in C takes apart.

httpx's own transport parses in Python, and takes 0.3 of the 0.5 ms of CPU of a small request.

It guarantees: threads may share it; connections are kept and used again, by one request at a time;
a read that meets a kept connection which the server has just closed is sent again; every failure is
an exception of httpx, in the words of Go's HTTP client. It does not: use proxies, send a request's
body in pieces.
"""

from __future__ import annotations

import select
import socket
import ssl
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any, NamedTuple

import httpx

from kcm.http.faults import CallFailed
from kcm.http.limits import CONNECT_TIMEOUT, IDLE_TIMEOUT
from kcm.http.messages import (
    END_OF_HEAD,
    MOST_FIELDS,
    MOST_HEAD,
    ResponseParser,
    is_informational,
    join_head,
    read_status,
)

_CHUNK = 64 * 1024  # bytes
_REPEATED = frozenset({"GET", "HEAD", "OPTIONS"})  # what changes nothing may be sent again


class _Origin(NamedTuple):
    """The server of a request."""

    scheme: str
    host: str
    port: int


class _Connection:
    """A connection to a server. It is also what httpx calls a network stream."""

    def __init__(self, origin: _Origin, channel: socket.socket) -> None:
        self.origin = origin
        self.socket = channel
        self.unused_since = 0.0  # seconds of the monotonic clock
        self._readable = select.poll()
        self._readable.register(channel, select.POLLIN)

    @property
    def is_quiet(self) -> bool:
        """Whether nothing has come that nobody asked for, such as the end."""
        return not self._readable.poll(0)

    def get_extra_info(self, info: str) -> Any:
        """Returns the socket, or the TLS of the connection, if that is the name; otherwise None."""
        if info == "ssl_object":
            return self.socket if isinstance(self.socket, ssl.SSLSocket) else None
        return self.socket if info == "socket" else None

    def cut(self) -> None:
        """Ends the connection from another thread; the thread that reads it closes it."""
        with suppress(OSError):
            socket.socket.shutdown(self.socket, socket.SHUT_RDWR)  # the socket itself, without TLS

    def close(self) -> None:
        self.socket.close()


class BlockingTransport(httpx.BaseTransport):
    """Sends the requests of httpx clients. It keeps up to `most_idle` unused connections to a
    server.
    """

    def __init__(self, trust: ssl.SSLContext, most_idle: int) -> None:
        self._trust = trust
        self._most_idle = most_idle
        self._lock = threading.Lock()
        self._unused: dict[_Origin, list[_Connection]] = {}
        self._used: set[_Connection] = set()
        self._closed = False

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Sends a request and returns the head of the response; its stream reads the body."""
        url = request.url
        secure = url.scheme == "https"
        if not secure and url.scheme != "http":
            raise httpx.UnsupportedProtocol(f'unsupported protocol scheme "{url.scheme}"')
        host = url.raw_host.decode("ascii").strip("[]")
        origin = _Origin(url.scheme, host, url.port or (443 if secure else 80))
        timeouts: Mapping[str, float | None] = request.extensions.get("timeout", {})
        message = _build_head(request) + b"".join(_read_pieces(request))
        while True:
            kept = self._take(origin)
            connection = kept or self._connect(origin, timeouts.get("connect"))
            exchange = _Exchange(connection, request.method)
            try:
                exchange.begin(message, timeouts)
            except BaseException as error:
                self._drop(connection)
                is_stale = kept is not None and exchange.is_silent
                is_broken = isinstance(error, httpx.RemoteProtocolError | httpx.ReadError)
                if is_stale and is_broken and request.method in _REPEATED:
                    continue
                raise
            return httpx.Response(
                exchange.response.status,
                headers=exchange.response.fields,
                stream=_Body(self, exchange),
                extensions={"network_stream": connection},
            )

    def close(self) -> None:
        """Closes the connections. Those in use are cut, and closed by their users."""
        with self._lock:
            self._closed = True
            unused = [one for several in self._unused.values() for one in several]
            self._unused.clear()
            for connection in self._used:
                connection.cut()
        for connection in unused:
            connection.close()

    def release(self, exchange: _Exchange) -> None:
        """Keeps the connection of an exchange that has ended, or closes it."""
        connection, now = exchange.connection, time.monotonic()
        with self._lock:
            self._used.discard(connection)
            unused = self._unused.get(connection.origin, [])
            if exchange.is_reusable and not self._closed and len(unused) < self._most_idle:
                connection.unused_since = now
                self._unused[connection.origin] = [*unused, connection]
                return
        connection.close()

    def _take(self, origin: _Origin) -> _Connection | None:
        """Returns the connection that was used last, None if there is none that is still good."""
        oldest = time.monotonic() - IDLE_TIMEOUT
        while True:
            with self._lock:
                unused = self._unused.get(origin)
                if not unused:
                    return None
                connection = unused.pop()
                if connection.unused_since >= oldest and connection.is_quiet:
                    self._used.add(connection)
                    return connection
            connection.close()

    def _drop(self, connection: _Connection) -> None:
        with self._lock:
            self._used.discard(connection)
        connection.close()

    def _connect(self, origin: _Origin, timeout: float | None) -> _Connection:
        channel: socket.socket | None = None
        try:
            channel = socket.create_connection(
                (origin.host, origin.port), timeout or CONNECT_TIMEOUT
            )
            channel.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if origin.scheme == "https":
                channel = self._trust.wrap_socket(channel, server_hostname=origin.host)
        except (OSError, ValueError) as error:
            if channel is not None:
                channel.close()
            if isinstance(error, TimeoutError):
                raise httpx.ConnectTimeout("i/o timeout") from error
            raise httpx.ConnectError(str(error)) from error
        connection = _Connection(origin, channel)
        with self._lock:
            self._used.add(connection)
            if self._closed:
                connection.cut()
        return connection


class _Exchange:
    """One request and its response."""

    def __init__(self, connection: _Connection, method: str) -> None:
        self.connection = connection
        self.response = ResponseParser(method)
        self.is_silent = True  # whether nothing of a response has come
        self._is_sent = False

    @property
    def is_reusable(self) -> bool:
        """Whether the connection may be used again."""
        response = self.response
        is_whole = self._is_sent and response.is_complete and not response.has_surplus
        return is_whole and response.lasts

    def begin(self, message: bytes, timeouts: Mapping[str, float | None]) -> None:
        """Sends the request and reads the head of the response."""
        try:
            self.connection.socket.settimeout(timeouts.get("write"))
            self.connection.socket.sendall(message)
            self._is_sent = True
        except TimeoutError as error:
            raise httpx.WriteTimeout("i/o timeout") from error
        except OSError as error:
            failure: OSError | None = error  # a server may respond before it has read all
        else:
            failure = None
        self.connection.socket.settimeout(timeouts.get("read"))
        try:
            self._read_head()
        except httpx.RemoteProtocolError as error:
            raise error from failure

    def pieces(self) -> Iterator[bytes]:
        """Yields the body as it comes."""
        response = self.response
        while True:
            while response.pieces:
                yield response.pieces.popleft()
            if response.is_read:
                return
            data = self._receive()
            if data:
                self._feed(data)
            elif response.is_sized:
                raise httpx.RemoteProtocolError("unexpected EOF")
            else:
                return

    def _read_head(self) -> None:
        data = b""
        for _ in range(MOST_FIELDS):
            while (end := data.find(END_OF_HEAD)) < 0:
                if len(data) > MOST_HEAD:
                    why = f"server response headers exceeded {MOST_HEAD} bytes; aborted"
                    raise httpx.RemoteProtocolError(f"net/http: {why}")
                more = self._receive()
                if not more:
                    raise httpx.RemoteProtocolError("unexpected EOF" if data else "EOF")
                self.is_silent = False
                data += more
            if not is_informational(read_status(data)):
                self._feed(data)
                return
            data = data[end + len(END_OF_HEAD) :]
        raise httpx.RemoteProtocolError("net/http: too many 1xx informational responses")

    def _receive(self) -> bytes:
        try:
            return self.connection.socket.recv(_CHUNK)
        except TimeoutError as error:
            raise httpx.ReadTimeout("i/o timeout") from error
        except OSError as error:
            raise httpx.ReadError(str(error)) from error

    def _feed(self, data: bytes) -> None:
        try:
            self.response.feed(data)
        except CallFailed as error:
            raise httpx.RemoteProtocolError(error.message) from None


class _Body(httpx.SyncByteStream):
    """The body of a response. Closing it gives the connection back."""

    def __init__(self, transport: BlockingTransport, exchange: _Exchange) -> None:
        self._transport = transport
        self._exchange = exchange
        self._is_closed = False

    def __iter__(self) -> Iterator[bytes]:
        return self._exchange.pieces()

    def close(self) -> None:
        if not self._is_closed:
            self._is_closed = True
            self._transport.release(self._exchange)


def _read_pieces(request: httpx.Request) -> Iterator[bytes]:
    assert isinstance(request.stream, httpx.SyncByteStream)  # a client for threads sends no other
    return iter(request.stream)


def _build_head(request: httpx.Request) -> bytes:
    target = request.url.raw_path
    lines = [request.method.encode("ascii") + b" " + target + b" HTTP/1.1"]
    lines += [name + b": " + value for name, value in request.headers.raw]
    try:
        return join_head(lines)
    except CallFailed as error:
        raise httpx.LocalProtocolError(error.message) from None
