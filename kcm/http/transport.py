"""Sends HTTP/1.1 requests from an event loop.

It guarantees: a request body and a response body are streams of which one read is in memory;
connecting, the head of the response, and a server that does not read have limits of time (see
`limits`); heads have one of size; every failure is a CallFailed in the words of Go's HTTP client.
A server is known by its certificate whatever address it is reached at. A connection that the server
upgrades is the caller's, with the bytes that follow the head.

It does not: limit the time of a response's body, whose reader may stop at any time; follow
redirects; decompress; keep cookies.

A `Pool` keeps connections. A request without one has a connection of its own.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from urllib.parse import SplitResult, urlsplit

from kcm.http.connections import Connection, Pool, Server, connect
from kcm.http.faults import CallFailed, connection_fault
from kcm.http.limits import HEAD_TIMEOUT, STALL_TIMEOUT
from kcm.http.messages import (
    END_OF_HEAD,
    MOST_FIELDS,
    MOST_HEAD,
    SWITCHING,
    ResponseParser,
    is_informational,
    join_head,
    read_status,
)

_CHUNK = 64 * 1024  # bytes

Fields = Sequence[tuple[bytes, bytes]]
Body = bytes | AsyncIterator[bytes]


@dataclass(frozen=True)
class Call:
    """A request. `target` is its path and query.

    `fields` are its headers without those that frame the message. A `body` that is a stream of
    unknown `length` is sent in chunks; None means no body. With `repeats`, it may be sent again if
    a kept connection turns out to be closed; its body must not be a stream.
    """

    method: str
    target: str
    fields: Fields = ()
    body: Body | None = None
    length: int | None = None
    head_timeout: float | None = HEAD_TIMEOUT  # seconds, None if the caller limits the time
    repeats: bool = False
    upgrades: bool = False  # whether it asks for an upgrade


@dataclass(frozen=True)
class Response:
    """The head of a response, and its body as a stream.

    The names of the headers are in lower case. The stream raises CallFailed if the server closes
    the connection too early, or does not keep to HTTP.
    """

    status: int
    body: AsyncIterator[bytes]
    fields: Fields = ()

    def header(self, name: bytes) -> str:
        """Returns the value of a header, "" if it is absent. `name` is in lower case."""
        return find_field(self.fields, name)


@dataclass(frozen=True)
class Upgraded:
    """An upgraded connection: the head of the response, and the streams in both directions."""

    head: bytes
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter


def find_field(fields: Fields, name: bytes) -> str:
    """Returns the value of a header, "" if it is absent. `name` is in lower case."""
    return next((value.decode("latin-1") for key, value in fields if key == name), "")


@asynccontextmanager
async def send(server: Server, call: Call, pool: Pool | None = None) -> AsyncIterator[Response]:
    """Sends a request, and yields the response. Leaving the context ends it.

    Raises BadRequest for an address that is not allowed, and CallFailed.
    """
    async with _exchange(server, call, pool) as exchange:
        yield Response(exchange.status, exchange.pieces(), exchange.fields)


@asynccontextmanager
async def upgrade(server: Server, call: Call) -> AsyncIterator[Response | Upgraded]:
    """Sends a request for an upgrade, and yields the connection, or the response if the server
    declines. Leaving the context closes the connection. Raises as `send`.
    """
    async with _exchange(server, replace(call, upgrades=True), None) as exchange:
        if exchange.is_upgraded:
            connection = exchange.connection
            yield Upgraded(exchange.head, connection.reader, connection.writer)
            connection.writer.close()  # sends what was written before
        else:
            yield Response(exchange.status, exchange.pieces(), exchange.fields)


@asynccontextmanager
async def _exchange(server: Server, call: Call, pool: Pool | None) -> AsyncIterator[_Exchange]:
    exchange = await _begin(server, call, pool)
    connection = exchange.connection
    try:
        yield exchange
        await exchange.stop_sending()
        if pool is not None and exchange.is_reusable:
            pool.keep(server, connection)
            return
    except BaseException:
        await exchange.stop_sending()
        connection.abort()
        raise
    connection.close()


async def _begin(server: Server, call: Call, pool: Pool | None) -> _Exchange:
    """Sends a request and reads the head of the response."""
    while True:
        kept = pool.take(server) if pool is not None else None
        connection = kept or await connect(server)
        exchange = _Exchange(connection, call, server)
        try:
            await exchange.begin()
        except BaseException as error:
            await exchange.stop_sending()
            connection.abort()
            if kept is None or not isinstance(error, CallFailed):
                raise
            # The server may just have closed it, as the request came.
            if not (call.repeats and exchange.is_silent):
                raise
        else:
            return exchange


class _Exchange:
    """One request and its response."""

    def __init__(self, connection: Connection, call: Call, server: Server) -> None:
        self.connection = connection
        self.head = b""
        self.is_silent = True  # whether no byte of a response has come
        self._call = call
        self._server = server
        self._response = ResponseParser(call.method)
        self._status = 0
        self._sending: asyncio.Task[None] | None = None
        self._sent = True

    @property
    def is_reusable(self) -> bool:
        """Whether the connection may be used again."""
        response = self._response
        return (
            response.is_complete
            and self._sent
            and not response.has_surplus
            and self.connection.is_quiet
            and response.lasts
        )

    @property
    def is_upgraded(self) -> bool:
        """Whether the server has upgraded the connection."""
        return self._status == SWITCHING

    @property
    def status(self) -> int:
        """The status code of the response."""
        return self._response.status

    @property
    def fields(self) -> Fields:
        """The headers of the response."""
        return self._response.fields

    async def begin(self) -> None:
        """Sends the request and reads the head of the response. Raises CallFailed."""
        body, writer = self._call.body, self.connection.writer
        head = build_head(self._call, self._server)
        if body is None or isinstance(body, bytes):
            writer.write(head + body if body else head)
        else:
            self._sent = False
            writer.write(head)
            self._sending = asyncio.ensure_future(self._send(body))
        try:
            self.head = await self._read_head_in_time()
        except TimeoutError:
            why = "net/http: timeout awaiting response headers"
            raise CallFailed(why, timed_out=True) from None
        except asyncio.IncompleteReadError as error:
            self.is_silent = not error.partial
            raise self._describe_end("unexpected EOF" if error.partial else "EOF") from None
        except asyncio.LimitOverrunError:
            why = f"net/http: server response headers exceeded {MOST_HEAD} bytes; aborted"
            raise CallFailed(why) from None
        if not self.is_upgraded:
            self._response.feed(self.head)
        elif not self._call.upgrades:
            raise CallFailed("unexpected upgrade")

    async def _read_head_in_time(self) -> bytes:
        if self._call.head_timeout is None:
            return await self._read_head()
        async with asyncio.timeout(self._call.head_timeout):
            return await self._read_head()

    async def _read_head(self) -> bytes:
        """Returns the head of the response proper. What is only informational is passed over."""
        for _ in range(MOST_FIELDS):
            head = await self.connection.reader.readuntil(END_OF_HEAD)
            self.connection.reader.left -= len(head)
            self.is_silent = False
            self._status = read_status(head)
            if not is_informational(self._status):
                return head
        raise CallFailed("net/http: too many 1xx informational responses")

    async def pieces(self) -> AsyncIterator[bytes]:
        """Yields the body in pieces. Raises CallFailed."""
        response = self._response
        while True:
            while response.pieces:
                yield response.pieces.popleft()
            if response.is_read:
                return
            data = await self.connection.reader.read(_CHUNK)
            if not data:
                if response.is_sized or self.connection.reader.failure is not None:
                    raise self._describe_end("unexpected EOF")
                return
            self.connection.reader.left -= len(data)
            response.feed(data)

    def _describe_end(self, why: str) -> CallFailed:
        failure = self.connection.reader.failure
        return connection_fault(failure, self._server.netloc) if failure else CallFailed(why)

    # --- the request's body

    async def _send(self, body: AsyncIterator[bytes]) -> None:
        # A server may respond before it has read the body, so its response says what went wrong.
        writer, chunked = self.connection.writer, self._call.length is None
        try:
            async for piece in body:
                if piece:
                    writer.write(b"%x\r\n%b\r\n" % (len(piece), piece) if chunked else piece)
                    await self._drain()
            if chunked:
                writer.write(b"0\r\n\r\n")
            await self._drain()
            self._sent = True
        except ConnectionError:
            return
        except Exception:
            writer.transport.abort()  # the server must not wait for the rest
            raise

    async def _drain(self) -> None:
        """Waits until little is left to send. Aborts the connection if the server reads nothing."""
        writer = self.connection.writer
        try:
            async with asyncio.timeout(STALL_TIMEOUT):
                await writer.drain()
        except TimeoutError:
            writer.transport.abort()
            raise ConnectionAbortedError("the server does not read") from None

    async def stop_sending(self) -> None:
        """Ends the sending of the request's body. Raises what its stream raised."""
        sending, self._sending = self._sending, None
        if sending is not None:
            sending.cancel()
            with suppress(asyncio.CancelledError):
                await sending


def build_head(call: Call, server: Server) -> bytes:
    """Returns the head of a request. Raises CallFailed for headers with line breaks."""
    lines = [f"{call.method} {call.target} HTTP/1.1".encode("latin-1", "replace")]
    if not any(name.lower() == b"host" for name, _ in call.fields):
        lines.append(b"host: " + server.netloc.encode("latin-1", "replace"))
    lines += [name + b": " + value for name, value in call.fields]
    length = len(call.body) if isinstance(call.body, bytes) else call.length
    if length is not None:
        lines.append(b"content-length: %d" % length)
    elif call.body is not None:
        lines.append(b"transfer-encoding: chunked")
    return join_head(lines)


def split_target(url: str) -> tuple[SplitResult, str]:
    """Returns the parts of a URL, and the target of a request for it. Raises ValueError."""
    parts = urlsplit(url)
    path = parts.path or "/"
    return parts, f"{path}?{parts.query}" if parts.query else path


def bearer(token: str) -> Fields:
    """Returns the header that carries a bearer token, none for an empty token."""
    return [(b"authorization", f"Bearer {token}".encode("latin-1", "replace"))] if token else []
