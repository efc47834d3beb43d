"""Connections to the servers of other APIs: HTTP/1.1 over TLS, with the front proxy's certificate.

Nothing is buffered beyond one read. Every step before a response's body has a limit of time, heads
of responses one of size, and redirects are not followed.

Source: updateAPIService in staging/src/k8s.io/kube-aggregator/pkg/apiserver/handler_proxy.go,
Kubernetes 1.33.
"""

from __future__ import annotations

import ssl
from collections import OrderedDict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from kcm import errors
from kcm.apiserver.aggregation.identity import Headers, ProxyIdentity
from kcm.apiserver.backends import faults
from kcm.apiserver.backends.client import Credentials, trust
from kcm.apiserver.backends.faults import CallFailed
from kcm.apiserver.backends.services import Address

if TYPE_CHECKING:
    import httpcore

CONNECT_TIMEOUT = 10.0  # seconds
WRITE_TIMEOUT = 60.0  # seconds in which the server reads nothing
IDLE = 90.0  # seconds that an unused connection is kept
MOST_POOLS = 100  # sets of connections to different servers
_REPEATED = frozenset({"GET", "HEAD", "OPTIONS"})
MOST_IDLE = 20  # unused connections in one of them


class UntrustedServer(errors.KcmError):
    """The certificates that the server must be known by, or our own, cannot be used."""


@dataclass(frozen=True)
class ServerTrust:
    """What a server's certificate must be for, and signed by.

    Without `authority`, the certificates that the system trusts are trusted; None stands for a
    bundle that cannot be read. With `insecure`, any certificate is accepted.
    """

    server_name: str
    authority: bytes | None = field(default=b"", repr=False)
    insecure: bool = False


@dataclass(frozen=True)
class Call:
    """A request: its method, the path and query, headers, and the body unless it has none."""

    method: str
    target: bytes
    headers: Headers = field(default_factory=list)
    body: AsyncIterator[bytes] | None = None
    keep: bool = True  # whether the connection may have been used before, and be used again


class BrokenResponse(errors.KcmError):
    """The server ended a response too early, or did not keep to HTTP."""


@dataclass(frozen=True)
class ServerResponse:
    """A response: its head, and its body as a stream, which raises BrokenResponse.

    `stream` is the connection itself, which is the caller's after an upgrade.
    """

    status: int
    headers: Headers
    body: AsyncIterator[bytes]
    stream: httpcore.AsyncNetworkStream


class ServerConnections:
    """Opens and keeps connections. It belongs to one event loop."""

    def __init__(self, identity: ProxyIdentity) -> None:
        self._identity = identity
        self._pools: OrderedDict[tuple[ServerTrust, bool], httpcore.AsyncConnectionPool] = (
            OrderedDict()
        )
        self._contexts: OrderedDict[ServerTrust, ssl.SSLContext] = OrderedDict()

    @asynccontextmanager
    async def request(
        self, to: ServerTrust, address: Address, call: Call
    ) -> AsyncIterator[ServerResponse]:
        """Sends a request, and yields the response, whose body is a stream.

        Leaving the context ends the response. Raises UntrustedServer, and CallFailed in the words
        of Go's HTTP client.
        """
        import httpcore  # noqa: PLC0415 - most clusters have no APIs of other servers

        request = httpcore.Request(
            call.method,
            httpcore.URL(
                scheme=b"https",
                host=address.host.encode(),
                port=address.port,
                target=call.target,
            ),
            headers=[(b"host", _host(address)), *call.headers],
            content=call.body,
            extensions={
                "sni_hostname": to.server_name,
                "timeout": {"connect": CONNECT_TIMEOUT, "write": WRITE_TIMEOUT},
            },
        )
        response = await self._send(self._pool(to, keep=call.keep), request, address, call)
        try:
            yield ServerResponse(
                response.status,
                list(response.headers),
                _read_body(response),
                response.extensions["network_stream"],
            )
        finally:
            await response.aclose()

    async def _send(
        self, pool: httpcore.AsyncConnectionPool, request: httpcore.Request, address: Address,
        call: Call,
    ) -> httpcore.Response:  # fmt: skip
        import httpcore  # noqa: PLC0415 - see `request`

        # A kept connection may just have been closed. As Go's client does, only what changes
        # nothing is sent again.
        attempts = 2 if call.keep and call.method in _REPEATED else 1
        for attempt in range(1, attempts + 1):
            try:
                return await pool.handle_async_request(request)
            except (httpcore.RemoteProtocolError, httpcore.ReadError) as error:
                if attempt == attempts:
                    raise faults.connection_fault(error, address) from None
            except httpcore.ConnectTimeout:
                where = f"{address.host}:{address.port}"
                raise CallFailed(f"dial tcp {where}: i/o timeout", timed_out=True) from None
            except (httpcore.NetworkError, httpcore.TimeoutException, OSError) as error:
                raise faults.connection_fault(error, address) from None
            except (httpcore.LocalProtocolError, httpcore.UnsupportedProtocol) as error:
                raise CallFailed(str(error)) from None
        raise AssertionError("unreachable")

    def _pool(self, to: ServerTrust, *, keep: bool) -> httpcore.AsyncConnectionPool:
        """Returns the connections to servers with this trust. The least recently used are dropped
        when there are too many; those in use end with their requests.
        """
        import httpcore  # noqa: PLC0415 - see `request`

        pool = self._pools.get((to, keep))
        if pool is None:
            pool = httpcore.AsyncConnectionPool(
                ssl_context=self._context(to),
                max_connections=None,
                max_keepalive_connections=MOST_IDLE if keep else 0,
                keepalive_expiry=IDLE,
                http2=False,
            )
            self._pools[to, keep] = pool
            while len(self._pools) > MOST_POOLS:
                self._pools.popitem(last=False)
        self._pools.move_to_end((to, keep))
        return pool

    def _context(self, to: ServerTrust) -> ssl.SSLContext:
        context = self._contexts.get(to)
        if context is None:
            context = self._contexts[to] = build_context(to, self._identity)
            while len(self._contexts) > MOST_POOLS:
                self._contexts.popitem(last=False)
        return context

    async def close(self) -> None:
        """Closes all connections."""
        while self._pools:
            _, pool = self._pools.popitem()
            await pool.aclose()


async def _read_body(response: httpcore.Response) -> AsyncIterator[bytes]:
    import httpcore  # noqa: PLC0415 - see `request`

    broken = (httpcore.NetworkError, httpcore.ProtocolError, httpcore.TimeoutException, OSError)
    try:
        async for part in response.aiter_stream():
            yield part
    except broken as error:
        raise BrokenResponse(f"unexpected EOF: {error}") from None


def build_context(to: ServerTrust, identity: ProxyIdentity) -> ssl.SSLContext:
    """Returns what is trusted, and shown, when a server is called. Raises UntrustedServer."""
    if to.authority is None:
        raise UntrustedServer("unable to load root certificates: illegal base64 data")
    credentials = Credentials(certificate=_read(identity))
    try:
        context = trust(b"" if to.insecure else to.authority, credentials)
    except CallFailed as error:
        raise UntrustedServer(error.message) from None
    if to.insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


def _read(identity: ProxyIdentity) -> bytes:
    """Returns the certificate and its key in PEM, b"" if there is none. Raises UntrustedServer."""
    files = [path for path in (identity.certificate, identity.key) if path]
    try:
        return b"\n".join(Path(path).read_bytes() for path in files)
    except OSError as error:
        raise UntrustedServer(f"{error.filename}: {error.strerror}") from None


def _host(address: Address) -> bytes:
    host = f"[{address.host}]" if ":" in address.host else address.host
    return f"{host}:{address.port}".encode()
