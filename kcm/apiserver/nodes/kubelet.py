"""An HTTP client for kubelets, whose responses are streams.

Nothing is buffered beyond one read, and leaving the context closes the connection. Redirects are
not followed: a kubelet never redirects.

Source: pkg/kubelet/client/kubelet_client.go, Kubernetes 1.33.
"""

from __future__ import annotations

import asyncio
import re
import ssl
from collections import deque
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from ipaddress import IPv6Address
from urllib.parse import urlsplit

import httptools

from kcm import errors
from kcm.api.core_v1 import Node
from kcm.store import Store, node_token

DEFAULT_PORT = 10250
CONNECT_TIMEOUT = 10.0  # seconds
HEAD_TIMEOUT = 30.0  # seconds until the head of the response is complete
_CHUNK = 64 * 1024
# As kubeadm sets --kubelet-preferred-address-types: names of nodes may be unknown to DNS.
_PREFERRED = ("InternalIP", "ExternalIP", "InternalDNS", "ExternalDNS", "Hostname")
_MAX_PORT = 65535
_NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9.-]{0,251}[A-Za-z0-9])?")  # or an IPv4 address
_MOST_HEAD = 64 * 1024  # bytes of a response to an upgrade


class KubeletUnreachable(errors.ApiError):
    """The kubelet cannot be reached or does not respond."""


@dataclass(frozen=True)
class KubeletAddress:
    """The URL of a node's kubelet, and the token that it accepts, "" for none."""

    url: str
    token: str = field(default="", repr=False)


def kubelet_of(store: Store, name: str, *, tls: bool | None) -> KubeletAddress:
    """Returns the address of a node's kubelet.

    `tls` says whether it is reached over TLS; for None the node's annotation says so.
    Raises BadRequest, NotFound and KubeletUnreachable.
    """
    node = store.get_as(Node, name)
    known = [(address.type, address.address) for address in node.status.addresses or ()]
    reachable = next((value for kind in _PREFERRED for type_, value in known if type_ == kind), "")
    if not reachable:
        listed = " ".join(f"{{{kind} {value}}}" for kind, value in known)
        raise KubeletUnreachable(f"no preferred addresses found; known addresses: [{listed}]")
    endpoints = node.status.daemon_endpoints
    endpoint = endpoints.kubelet_endpoint if endpoints else None
    port = (endpoint.port if endpoint else 0) or DEFAULT_PORT
    host = _host(name, reachable, port)
    key = node_token.read_key(store)
    token = node_token.derive_token(key, name, reachable, port) if key else ""
    if tls is None:
        tls = node.annotations.get(node_token.TLS_ANNOTATION) == "true"
    return KubeletAddress(f"{'https' if tls else 'http'}://{host}:{port}", token)


def _host(node: str, address: str, port: int) -> str:
    """Returns the address in the form that a URL needs. Raises BadRequest if it is not valid.

    It comes from the node's status, so it cannot be trusted.
    """
    if not 0 < port <= _MAX_PORT:
        raise errors.BadRequest(f"node {node}: port {port} of its kubelet is not valid")
    if _NAME.fullmatch(address):
        return address
    try:
        if "%" not in address:  # a zone id is valid on this machine only
            return f"[{IPv6Address(address)}]"
    except ValueError:
        pass  # reported below
    raise errors.BadRequest(f"node {node}: address {address!r} is not valid")


@dataclass(frozen=True)
class KubeletResponse:
    """The status of a response, and its body as a stream."""

    status: int
    body: AsyncIterator[bytes]
    content_type: str = "text/plain"


@dataclass(frozen=True)
class Upgraded:
    """An upgraded connection: the head of the response, and the streams in both directions."""

    head: bytes
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter


class KubeletClient:
    """Sends requests to kubelets.

    `tls` checks their certificates; without it, requests are sent over plain HTTP. With `mixed`,
    only nodes that say so are reached over TLS.
    """

    def __init__(self, tls: ssl.SSLContext | None = None, *, mixed: bool = False) -> None:
        self._tls = tls
        self._mixed = mixed

    @property
    def tls(self) -> bool | None:
        """Whether kubelets are reached over TLS; None if that depends on the node."""
        return None if self._mixed else self._tls is not None

    @asynccontextmanager
    async def get(self, url: str, token: str = "") -> AsyncIterator[KubeletResponse]:
        """Sends a GET. The connection is closed when the context ends.

        Raises KubeletUnreachable.
        """
        async with self._connect(url) as (reader, writer):
            writer.write(_request(url, {"Accept": "*/*", "Connection": "close"}, token))
            yield await _read_response(url, reader)

    @asynccontextmanager
    async def upgrade(
        self, url: str, headers: Mapping[str, str], token: str = ""
    ) -> AsyncIterator[Upgraded | KubeletResponse]:
        """Sends an upgrade request with the client's headers.

        Yields the upgraded connection, or the response if the kubelet declines. Raises
        KubeletUnreachable.
        """
        async with self._connect(url) as (reader, writer):
            writer.write(_request(url, headers, token))
            try:
                async with asyncio.timeout(HEAD_TIMEOUT):
                    head = await reader.readuntil(b"\r\n\r\n")
            except (OSError, TimeoutError, EOFError, asyncio.LimitOverrunError) as error:
                raise _unreachable(url, error) from None
            if head.startswith(b"HTTP/1.1 101 "):
                yield Upgraded(head, reader, writer)
            else:
                yield await _read_response(url, reader, head)

    @asynccontextmanager
    async def _connect(
        self, url: str
    ) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
        parts = urlsplit(url)
        try:
            async with asyncio.timeout(CONNECT_TIMEOUT):
                reader, writer = await asyncio.open_connection(
                    parts.hostname,
                    parts.port,
                    ssl=self._tls if parts.scheme == "https" else None,
                    limit=_MOST_HEAD,
                )
        except (OSError, TimeoutError) as error:
            raise _unreachable(url, error) from None
        try:
            yield reader, writer
        finally:
            writer.close()


async def _read_response(
    url: str, reader: asyncio.StreamReader, head: bytes = b""
) -> KubeletResponse:
    exchange = _Exchange(reader)
    try:
        async with asyncio.timeout(HEAD_TIMEOUT):
            await exchange.head(head)
    except (OSError, TimeoutError, httptools.HttpParserError) as error:
        raise _unreachable(url, error) from None
    return KubeletResponse(exchange.status, exchange.pieces(), exchange.content_type)


def _request(url: str, headers: Mapping[str, str], token: str) -> bytes:
    parts = urlsplit(url)
    target = f"{parts.path}?{parts.query}" if parts.query else parts.path
    lines = [f"GET {target} HTTP/1.1", f"Host: {parts.netloc}"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    if token:
        lines.append(f"Authorization: Bearer {token}")
    return "\r\n".join([*lines, "", ""]).encode("latin-1")


def _unreachable(url: str, error: Exception) -> KubeletUnreachable:
    return KubeletUnreachable(f'Get "{url}": {error or type(error).__name__}')


class _Exchange:
    """Parses one response. The parser calls the methods `on_*`."""

    def __init__(self, reader: asyncio.StreamReader) -> None:
        self._reader = reader
        self._parser = httptools.HttpResponseParser(self)
        self._pieces: deque[bytes] = deque()
        self._headed = self._complete = False
        self.status = 0
        self.content_type = ""

    async def head(self, known: bytes = b"") -> None:
        """Reads until the headers are complete. `known` was read before.

        Raises ConnectionError if the kubelet closes the connection first.
        """
        if known:
            self._parser.feed_data(known)
        while not self._headed:
            if not await self._read():
                raise ConnectionResetError("the kubelet closed the connection")

    async def pieces(self) -> AsyncIterator[bytes]:
        """Yields the body in pieces. It ends early if the kubelet closes the connection."""
        while True:
            while self._pieces:
                yield self._pieces.popleft()
            if self._complete or not await self._read():
                return

    async def _read(self) -> bool:
        data = await self._reader.read(_CHUNK)
        if data:
            self._parser.feed_data(data)
        return bool(data)

    def on_header(self, name: bytes, value: bytes) -> None:
        if name.lower() == b"content-type":
            self.content_type = value.decode("latin-1")

    def on_headers_complete(self) -> None:
        self.status, self._headed = self._parser.get_status_code(), True

    def on_body(self, body: bytes) -> None:
        self._pieces.append(body)

    def on_message_complete(self) -> None:
        self._complete = True
