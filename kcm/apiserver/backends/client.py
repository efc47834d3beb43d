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
import posixpath
import ssl
import tempfile
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from importlib import import_module
from typing import TYPE_CHECKING
from urllib.parse import SplitResult, quote, unquote, urlsplit

from kcm import errors
from kcm.apiserver.backends import faults
from kcm.apiserver.backends.breaking import BreaksCalls, break_call
from kcm.apiserver.backends.faults import CallFailed
from kcm.apiserver.backends.known import Known
from kcm.apiserver.backends.services import Address, ServiceResolver
from kcm.apiserver.backends.waiting import LoopWaiter

if TYPE_CHECKING:
    from kcm.apiserver.backends.posting import Poster

MOST_IDENTITIES = 200  # of servers, as upstream
_POSTING = "kcm.apiserver.backends.posting"
_HTTPS_PORT = 443
_MOST_URLS = 1024  # URLs that are kept
_SAFE = "/:@!$&'()*+,;=~"  # characters of a path that stay as they are


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
    names: tuple[str, ...] = ()  # what tests know it by

    @property
    def url(self) -> str:
        """The URL to request, in which a Service has its name in the cluster."""
        target = self.target
        if isinstance(target, str):
            return target
        path = quote(target.path.lstrip("/"), safe=_SAFE)
        return f"https://{target.server_name}:{target.port}/{path}"

    @cached_property
    def parts(self) -> SplitResult:
        """The parts of the URL."""
        return urlsplit(self.url)

    @cached_property
    def headers(self) -> Mapping[str, str]:
        """The headers of requests."""
        return {
            "Host": self.parts.netloc.rpartition("@")[2],
            "Content-Type": "application/json",
            "Accept": "application/json, */*",
            "User-Agent": "kube-apiserver-admission",
            **dict(self.credentials.headers),
        }


_Identity = tuple[bytes, str, Credentials]


class BackendClient:
    """Calls servers. Handlers may share it; they call it from threads and greenlets."""

    def __init__(
        self,
        resolver: ServiceResolver,
        waiter: LoopWaiter,
        breaks: BreaksCalls | None = None,
    ) -> None:
        self._resolver = resolver
        self._breaks = breaks
        self._waiter = waiter
        # used in the event loop only
        self._identities: OrderedDict[_Identity, Known] = OrderedDict()
        self._poster: Poster | None = None

    def post(self, backend: Backend, body: bytes, timeout: float) -> bytes:
        """Returns the body of the response to a POST of JSON.

        `timeout` is in seconds, for the whole call. Raises CallFailed.
        """
        return self._waiter.wait(lambda: self.post_soon(backend, body, timeout))

    async def post_soon(self, backend: Backend, body: bytes, timeout: float) -> bytes:
        """Does what `post` does, in the event loop."""
        try:
            async with asyncio.timeout(timeout):
                return await self._post(backend, body, math.ceil(timeout))
        except TimeoutError:
            why = f"{_asked(backend, timeout)}: context deadline exceeded"
            raise CallFailed(why, timed_out=True) from None
        except CallFailed as error:
            if error.answered:
                raise
            raise CallFailed(f"{_asked(backend, timeout)}: {error.message}") from None

    async def _post(self, backend: Backend, body: bytes, seconds: int) -> bytes:
        address = self._find_address(backend)
        if self._breaks is not None and (how := self._breaks.find_break(backend.names)):
            await break_call(how, address)
        known = self._identify(backend)
        url = _url_at(address, backend.parts, seconds)
        if self._poster is None:  # imported when needed, as the library takes 0.1 s
            module = await asyncio.to_thread(import_module, _POSTING)
            self._poster = module.Poster()
        try:
            status, answer = await self._poster.post(url, backend.headers, body, known)
        except OSError as error:
            raise faults.connection_fault(error, address) from None
        if not 200 <= status < 300:
            raise faults.status_fault(status, answer)
        return answer

    def _find_address(self, backend: Backend) -> Address:
        target = backend.target
        if isinstance(target, str):
            try:
                parts = backend.parts
                return Address(parts.hostname or "", parts.port or _HTTPS_PORT)
            except ValueError as error:
                raise CallFailed(f"Unparsable URL: {error}") from None
        try:
            return self._resolver.resolve(target.namespace, target.name, target.port)
        except errors.NotFound:
            raise CallFailed(f'service "{target.name}" not found') from None
        except errors.ApiError as error:
            raise CallFailed(error.message) from None

    # --- identities

    def _identify(self, backend: Backend) -> Known:
        """Returns how servers with the backend's name and certificates are known.

        The least recently used ones are dropped when there are too many; connections that they
        have are closed when they are idle.
        """
        server_name = backend.parts.hostname or ""
        key = (backend.authority, server_name, backend.credentials)
        known = self._identities.get(key)
        if known is None:
            known = Known(server_name, trust(backend.authority, backend.credentials))
            self._identities[key] = known
            if len(self._identities) > MOST_IDENTITIES:
                self._identities.popitem(last=False)
        self._identities.move_to_end(key)
        return known

    async def close(self) -> None:
        """Closes all connections."""
        poster, self._poster = self._poster, None
        if poster is not None:
            await poster.close()


def _asked(backend: Backend, timeout: float) -> str:
    """Returns the request, as errors name it."""
    return f'Post "{backend.url}?timeout={math.ceil(timeout)}s"'


@lru_cache(maxsize=_MOST_URLS)
def _url_at(address: Address, parts: SplitResult, seconds: int) -> str:
    """Returns the URL of a backend at one of its addresses.

    The path is what Go's path.Join makes of it: without repeated and trailing slashes, `.` and
    `..`. Servers of Go redirect from other paths.
    """
    host = f"[{address.host}]" if ":" in address.host else address.host
    query = f"{parts.query}&" if parts.query else ""
    cleaned = posixpath.normpath(f"/{unquote(parts.path).lstrip('/')}")
    path = quote(cleaned, safe=_SAFE)
    return f"https://{host}:{address.port}{path}?{query}timeout={seconds}s"


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
