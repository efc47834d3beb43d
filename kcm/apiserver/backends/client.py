"""Calls the servers behind webhooks: one POST of JSON each, over TLS, within a time.

Calls run in the event loop, so that a server that is slow, or does not answer, holds no thread.
Connections are kept and used again. A response is read up to `MOST_RESPONSE` bytes.

Errors have the words of Go's HTTP client, because operators' tests and people look for them.

Source: staging/src/k8s.io/apiserver/pkg/util/webhook/client.go, Kubernetes 1.33.
"""

from __future__ import annotations

import asyncio
import base64
import math
import ssl
import tempfile
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import SplitResult, quote, urlsplit

import httpcore

from kcm import errors
from kcm.apiserver.backends import faults
from kcm.apiserver.backends.faults import CallFailed
from kcm.apiserver.backends.services import Address, ServiceResolver
from kcm.apiserver.backends.waiting import LoopWaiter

MOST_RESPONSE = 6 * 1024 * 1024  # bytes: a patch in base64 of the largest object
MOST_POOLS = 200  # sets of connections to different servers, as upstream
_IDLE = 90.0  # seconds that an unused connection is kept
_HTTPS_PORT = 443
_SAFE = "/%:@!$&'()*+,;=~"  # characters of a path that stay as they are


@dataclass(frozen=True)
class ServiceTarget:
    """A server behind a port of a Service."""

    namespace: str
    name: str
    port: int = _HTTPS_PORT
    path: str = ""

    @property
    def server_name(self) -> str:
        """The name that the server's certificate must be for."""
        return f"{self.name}.{self.namespace}.svc"


@dataclass(frozen=True)
class Credentials:
    """How the API server identifies itself to a server, if at all."""

    headers: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    certificate: bytes = field(default=b"", repr=False)  # with its key, in PEM


NO_CREDENTIALS = Credentials()


@dataclass(frozen=True)
class Backend:
    """A server to call: at a URL or behind a Service, and what its certificate must be signed by.

    Without `authority`, the certificates that the system trusts are trusted.
    """

    target: str | ServiceTarget  # a URL with https
    authority: bytes = b""  # in PEM
    credentials: Credentials = NO_CREDENTIALS

    @property
    def url(self) -> str:
        """The URL to request, in which a Service has its name in the cluster."""
        target = self.target
        if isinstance(target, str):
            return target
        path = f"/{target.path.lstrip('/')}" if target.path else "/"
        return f"https://{target.server_name}:{target.port}{path}"


@dataclass(frozen=True)
class _Pool:
    """The connections to servers that one set of certificates identifies."""

    connections: httpcore.AsyncConnectionPool


_Identity = tuple[bytes, str, Credentials]


class BackendClient:
    """Calls servers. Handlers may share it; they call it from threads and greenlets."""

    def __init__(self, resolver: ServiceResolver, waiter: LoopWaiter) -> None:
        self._resolver = resolver
        self._waiter = waiter
        self._pools: OrderedDict[_Identity, _Pool] = OrderedDict()  # used in the event loop only

    def post(self, backend: Backend, body: bytes, timeout: float) -> bytes:
        """Returns the body of the response to a POST of JSON.

        `timeout` is in seconds, for the whole call. Raises CallFailed.
        """
        return self._waiter.wait(lambda: self.post_soon(backend, body, timeout))

    async def post_soon(self, backend: Backend, body: bytes, timeout: float) -> bytes:
        """Does what `post` does, in the event loop."""
        asked = f'Post "{backend.url}?timeout={math.ceil(timeout)}s"'
        try:
            async with asyncio.timeout(timeout):
                return await self._post(backend, body, math.ceil(timeout))
        except TimeoutError:
            raise CallFailed(f"{asked}: context deadline exceeded", timed_out=True) from None
        except CallFailed as error:
            if error.answered:
                raise
            raise CallFailed(f"{asked}: {error.message}") from None

    async def _post(self, backend: Backend, body: bytes, seconds: int) -> bytes:
        parts = urlsplit(backend.url)
        address = self._find_address(backend, parts)
        pool = self._pool(backend, parts.hostname or "")
        url = httpcore.URL(
            scheme=b"https",
            host=address.host.encode(),
            port=address.port,
            target=_target(parts, seconds),
        )
        headers = {
            "host": parts.netloc.rpartition("@")[2],
            "content-type": "application/json",
            "accept": "application/json, */*",
            "user-agent": "kube-apiserver-admission",
            "content-length": str(len(body)),
            **dict(backend.credentials.headers),
        }
        for attempt in (0, 1):
            try:
                return await self._request(pool, url, headers, body, parts.hostname or "")
            except (httpcore.RemoteProtocolError, httpcore.ReadError) as error:
                if attempt:  # the first time, the server may just have closed a kept connection
                    raise faults.connection_fault(error, address) from None
            except (httpcore.ConnectError, httpcore.WriteError, OSError) as error:
                raise faults.connection_fault(error, address) from None
            except (httpcore.LocalProtocolError, ValueError) as error:
                raise CallFailed(str(error)) from None
        raise AssertionError("unreachable")

    async def _request(
        self,
        pool: _Pool,
        url: httpcore.URL,
        headers: Mapping[str, str],
        body: bytes,
        server_name: str,
    ) -> bytes:
        async with pool.connections.stream(
            b"POST",
            url,
            headers=[(name.encode(), value.encode()) for name, value in headers.items()],
            content=body,
            extensions={"sni_hostname": server_name},
        ) as response:
            answer = bytearray()
            async for part in response.aiter_stream():
                answer += part
                if len(answer) > MOST_RESPONSE:
                    why = f"the response is larger than {MOST_RESPONSE} bytes"
                    raise CallFailed(why)
        if not 200 <= response.status < 300:
            raise faults.status_fault(response.status, bytes(answer))
        return bytes(answer)

    def _find_address(self, backend: Backend, parts: SplitResult) -> Address:
        target = backend.target
        if isinstance(target, str):
            try:
                return Address(parts.hostname or "", parts.port or _HTTPS_PORT)
            except ValueError as error:
                raise CallFailed(f"Unparsable URL: {error}") from None
        try:
            return self._resolver.resolve(target.namespace, target.name, target.port)
        except errors.NotFound:
            raise CallFailed(f'service "{target.name}" not found') from None
        except errors.ApiError as error:
            raise CallFailed(error.message) from None

    # --- connections

    def _pool(self, backend: Backend, server_name: str) -> _Pool:
        """Returns the connections for servers with this name and these certificates.

        The least recently used ones are dropped when there are too many.
        """
        key = (backend.authority, server_name, backend.credentials)
        pool = self._pools.get(key)
        if pool is None:
            pool = _Pool(_connections(backend))
            self._pools[key] = pool
            while len(self._pools) > MOST_POOLS:
                _, oldest = self._pools.popitem(last=False)
                self._waiter.start(oldest.connections.aclose())
        self._pools.move_to_end(key)
        return pool

    async def close(self) -> None:
        """Closes all connections."""
        while self._pools:
            _, pool = self._pools.popitem()
            await pool.connections.aclose()


def _target(parts: SplitResult, seconds: int) -> bytes:
    query = f"{parts.query}&" if parts.query else ""
    path = quote(parts.path or "/", safe=_SAFE)
    return f"{path}?{query}timeout={seconds}s".encode()


def _connections(backend: Backend) -> httpcore.AsyncConnectionPool:
    return httpcore.AsyncConnectionPool(
        ssl_context=trust(backend.authority, backend.credentials),
        max_connections=None,
        keepalive_expiry=_IDLE,
        http1=True,
        http2=False,  # so that connections spread over a Service's endpoints, as upstream
    )


def trust(authority: bytes, credentials: Credentials = NO_CREDENTIALS) -> ssl.SSLContext:
    """Returns what is trusted, and shown, when a server is called. Raises CallFailed.

    As in Go, a certificate that is trusted need not be an authority's.
    """
    try:
        context = ssl.create_default_context(cadata=authority.decode() if authority else None)
        if credentials.certificate:
            with tempfile.NamedTemporaryFile(prefix="kcm-") as file:  # ssl reads keys from files
                file.write(credentials.certificate)
                file.flush()
                context.load_cert_chain(file.name)
    except (ssl.SSLError, OSError, ValueError) as error:
        raise CallFailed(f"unable to load root certificates: {error}") from None
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    return context


def basic(username: str, password: str) -> str:
    """Returns the value of the header Authorization for a name and a password."""
    return "Basic " + base64.b64encode(f"{username}:{password}".encode()).decode()
