"""An HTTP/1.1 client whose requests and responses are streams.

Each request has a connection of its own, which is closed when its context ends. Nothing is buffered
beyond one read, and redirects are not followed. Connecting, the head of the response, and a server
that does not read have limits of time; a body that comes has none, as its reader may stop at any
time.
"""

from __future__ import annotations

import asyncio
import ssl
from collections import deque
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

import httptools

from kcm.apiserver.backends.reachable import resolve_global

CONNECT_TIMEOUT = 10.0  # seconds
HEAD_TIMEOUT = 30.0  # seconds until the head of the response is complete
STALL_TIMEOUT = 60.0  # seconds for which a server may read nothing of a request's body
_CHUNK = 64 * 1024
_MOST_HEAD = 64 * 1024  # bytes of a response's head
_MOST_FIELDS = 500  # headers of a response
_INFORMATIONAL = range(102, 200)
_CONTINUE = 100

Fields = Sequence[tuple[str, str]]


class ExchangeError(Exception):
    """The server cannot be reached, or does not respond as HTTP/1.1 asks for."""


@dataclass(frozen=True)
class Outgoing:
    """A request to send.

    `fields` are its headers without those that frame the message. A `body` of unknown length is
    sent in chunks, None means no body. `length` is the body's length in bytes if it is known. With
    `to_global`, it is sent to a global address only, see `reachable`.
    """

    method: str
    url: str
    fields: Fields = ()
    body: AsyncIterator[bytes] | None = None
    length: int | None = None
    head_timeout: float = HEAD_TIMEOUT  # seconds
    to_global: bool = False


@dataclass(frozen=True)
class Incoming:
    """A response: its status, its headers, and its body as a stream.

    The stream raises ConnectionError if the server closes the connection too early.
    """

    status: int
    body: AsyncIterator[bytes]
    fields: Fields = ()

    @property
    def content_type(self) -> str:
        """Returns the value of Content-Type, `text/plain` if there is none."""
        return self.header("content-type") or "text/plain"

    def header(self, name: str) -> str:
        """Returns the value of a header, "" if it is absent. `name` is in lower case."""
        return next((value for key, value in self.fields if key.lower() == name), "")


@dataclass(frozen=True)
class Upgraded:
    """An upgraded connection: the head of the response, and the streams in both directions."""

    head: bytes
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter


@asynccontextmanager
async def send(
    request: Outgoing, tls: ssl.SSLContext | None = None
) -> AsyncIterator[Incoming | Upgraded]:
    """Sends a request, and yields the response, or the connection if the server upgrades it.

    `tls` is needed for https. Raises ExchangeError, and BadRequest for an address that is not
    allowed.
    """
    async with _connect(request, tls) as (reader, writer):
        sending = asyncio.ensure_future(_send(request, writer))
        try:
            yield await _receive(request, reader, writer)
        finally:
            sending.cancel()
            with suppress(asyncio.CancelledError, OSError):
                await sending


@asynccontextmanager
async def _connect(
    request: Outgoing, tls: ssl.SSLContext | None
) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    parts = urlsplit(request.url)
    secure = parts.scheme == "https"
    host, port = parts.hostname or "", parts.port or (443 if secure else 80)
    try:
        async with asyncio.timeout(CONNECT_TIMEOUT):
            reader, writer = await _open_first(
                await resolve_global(host, port) if request.to_global else [host],
                port,
                ssl=tls if secure else None,
                server_hostname=host if secure else None,
                limit=_MOST_HEAD,
            )
    except (OSError, TimeoutError) as error:
        raise ExchangeError(_reason(error)) from None
    try:
        yield reader, writer
    finally:
        writer.close()


async def _open_first(
    hosts: Sequence[str], port: int, **options: Any
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Connects to the first of the hosts that answers. Raises OSError if none does."""
    failure = OSError("the host has no address")
    for host in hosts:
        try:
            return await asyncio.open_connection(host, port, **options)
        except OSError as error:
            failure = error
    raise failure


def _reason(error: Exception) -> str:
    return str(error) or type(error).__name__


async def _send(request: Outgoing, writer: asyncio.StreamWriter) -> None:
    # A server may respond before it has read the body, so its response says what went wrong.
    with suppress(ConnectionError):
        writer.write(_head(request))
        if request.body is None:
            return
        chunked = request.length is None
        async for piece in request.body:
            if piece:
                writer.write(b"%x\r\n%b\r\n" % (len(piece), piece) if chunked else piece)
                await _drain(writer)
        if chunked:
            writer.write(b"0\r\n\r\n")
        await _drain(writer)


async def _drain(writer: asyncio.StreamWriter) -> None:
    """Waits until little is left to send. Aborts the connection if the server reads nothing."""
    try:
        async with asyncio.timeout(STALL_TIMEOUT):
            await writer.drain()
    except TimeoutError:
        writer.transport.abort()
        raise ConnectionAbortedError("the server does not read") from None


def _head(request: Outgoing) -> bytes:
    parts = urlsplit(request.url)
    path = parts.path or "/"
    target = f"{path}?{parts.query}" if parts.query else path
    fields = list(request.fields)
    if not any(name.lower() == "host" for name, _ in fields):
        fields.insert(0, ("Host", parts.netloc))
    if request.body is not None and request.length is None:
        fields.append(("Transfer-Encoding", "chunked"))
    elif request.length is not None:
        fields.append(("Content-Length", str(request.length)))
    lines = [f"{request.method} {target} HTTP/1.1", *(f"{key}: {value}" for key, value in fields)]
    return "\r\n".join([*lines, "", ""]).encode("latin-1", "replace")


async def _receive(
    request: Outgoing, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> Incoming | Upgraded:
    try:
        async with asyncio.timeout(request.head_timeout):
            head = await _read_head(reader)
            if head.startswith(b"HTTP/1.1 101 "):
                return Upgraded(head, reader, writer)
            exchange = _Exchange(reader, bodiless=request.method == "HEAD")
            exchange.parse(head)
    except TimeoutError:
        raise ExchangeError("timeout awaiting response headers") from None
    except (OSError, EOFError, asyncio.LimitOverrunError, httptools.HttpParserError) as error:
        raise ExchangeError(_reason(error)) from None
    return Incoming(exchange.status, exchange.pieces(), exchange.fields)


async def _read_head(reader: asyncio.StreamReader) -> bytes:
    """Returns the head of the response proper. What is only informational is passed over."""
    for _ in range(_MOST_FIELDS):
        head = await reader.readuntil(b"\r\n\r\n")
        code = head[9:12]
        if not code.isdigit() or (int(code) != _CONTINUE and int(code) not in _INFORMATIONAL):
            return head
    raise ConnectionResetError("too many informational responses")


@dataclass
class _Exchange:
    """Parses one response. The parser calls the methods `on_*`."""

    reader: asyncio.StreamReader
    bodiless: bool  # whether the response has headers only, whatever they say
    status: int = 0
    fields: list[tuple[str, str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._parser = httptools.HttpResponseParser(self)
        self._pieces: deque[bytes] = deque()
        self._complete = False
        self._sized = False

    def parse(self, head: bytes) -> None:
        """Reads the headers. Raises HttpParserError."""
        self._parser.feed_data(head)
        self.bodiless = self.bodiless or self.status in {204, 304}

    async def pieces(self) -> AsyncIterator[bytes]:
        """Yields the body in pieces.

        Raises ConnectionError if the server closes the connection before the body is complete, and
        HttpParserError.
        """
        while not self.bodiless:
            while self._pieces:
                yield self._pieces.popleft()
            if self._complete:
                return
            data = await self.reader.read(_CHUNK)
            if not data:
                if self._sized:
                    raise ConnectionResetError("the server closed the connection")
                return
            self._parser.feed_data(data)

    def on_header(self, name: bytes, value: bytes) -> None:
        if len(self.fields) >= _MOST_FIELDS:
            return
        if name.lower() in {b"content-length", b"transfer-encoding"}:
            self._sized = True
        self.fields.append((name.decode("latin-1"), value.decode("latin-1")))

    def on_headers_complete(self) -> None:
        self.status = self._parser.get_status_code()

    def on_body(self, body: bytes) -> None:
        self._pieces.append(body)

    def on_message_complete(self) -> None:
        self._complete = True


def bearer(token: str) -> Mapping[str, str]:
    """Returns the header that carries a bearer token, none for an empty token."""
    return {"Authorization": f"Bearer {token}"} if token else {}
