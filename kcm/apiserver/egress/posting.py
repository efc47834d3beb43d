"""Calls the servers behind webhooks: one POST of JSON each, over TLS, within a time.

Calls run in the event loop, so that a server that is slow, or does not answer, holds no thread.
Connections are kept and used again. A response is read up to `MOST_RESPONSE` bytes.

Errors have the words of Go's HTTP client, because operators' tests and people look for them.

Source: staging/src/k8s.io/apiserver/pkg/util/webhook/client.go, Kubernetes 1.33.
"""

from __future__ import annotations

import base64
import math
import posixpath
from dataclasses import dataclass, field, replace
from functools import cached_property
from urllib.parse import SplitResult, quote, unquote, urljoin, urlsplit

from kcm import errors
from kcm.apiserver.egress.breaking import BreaksCalls, break_call
from kcm.apiserver.egress.services import Address, ServiceResolver
from kcm.apiserver.egress.waiting import LoopWaiter
from kcm.http import faults
from kcm.http.connections import Pool, Server
from kcm.http.faults import CallFailed
from kcm.http.fetching import Answer, fetch
from kcm.http.limits import MOST_REDIRECTS
from kcm.http.time_limits import TimeLimits
from kcm.http.transport import Call, Fields, split_target
from kcm.http.trust import Trust, find_context

MOST_RESPONSE = 6 * 1024 * 1024  # bytes: a patch in base64 of the largest object
DEFAULT_PORT, _HTTP_PORT = 443, 80  # of https and of http
_SAFE = "/:@!$&'()*+,;=~"  # characters of a path that stay as they are
_PRINTABLE = "".join(map(chr, range(0x21, 0x7F)))
_REPEATED = frozenset({307, 308})  # redirects after which the POST is sent again
_REDIRECTS = frozenset({301, 302, 303}) | _REPEATED
_ABOUT_ORIGIN = frozenset({b"host", b"authorization"})  # headers that another server does not get


@dataclass(frozen=True)
class ServiceTarget:
    """A server behind a port of a Service."""

    namespace: str
    name: str
    port: int = DEFAULT_PORT
    path: str = ""

    @property
    def server_name(self) -> str:
        """The name that the server's certificate must be for."""
        return f"{self.name}.{self.namespace}.svc"


@dataclass(frozen=True)
class Credentials:
    """How the API server identifies itself to a server, if at all."""

    headers: Fields = field(default=(), repr=False)
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
    def host(self) -> str:
        """The host of the URL, which the server's certificate must be for."""
        return self.parts.hostname or ""

    @cached_property
    def address(self) -> Address:
        """Where to connect to if the target is a URL. Raises ValueError."""
        return Address(self.host, self.parts.port or DEFAULT_PORT)

    @cached_property
    def path_and_query(self) -> str:
        """The target of requests, to whose query the time is added that the server has.

        The path is what Go's path.Join makes of it: without repeated and trailing slashes, `.` and
        `..`. Servers of Go redirect from other paths.
        """
        cleaned = posixpath.normpath(f"/{unquote(self.parts.path).lstrip('/')}")
        query = f"{self.parts.query}&" if self.parts.query else ""
        return f"{quote(cleaned, safe=_SAFE)}?{query}"

    @cached_property
    def fields(self) -> Fields:
        """The headers of requests."""
        return (
            (b"host", self.parts.netloc.rpartition("@")[2].encode()),
            (b"content-type", b"application/json"),
            (b"accept", b"application/json, */*"),
            (b"user-agent", b"kube-apiserver-admission"),
            *self.credentials.headers,
        )


@dataclass(frozen=True)
class _Request:
    """A request and the server that it goes to, whose name in the cluster `url` has."""

    server: Server
    url: str
    call: Call

    def follow(self, answer: Answer) -> _Request | None:
        """Returns the request that a redirect asks for, None if the answer is no redirect.

        Raises CallFailed.
        """
        location = answer.header(b"location")
        if answer.status not in _REDIRECTS or not location:
            return None
        try:
            url = urljoin(self.url, quote(location, safe=_PRINTABLE))
            parts, target = split_target(url)
            server = Server.of(parts, self.server.tls)
        except ValueError as error:
            raise CallFailed(f"failed to parse Location header: {error}") from None
        if parts.scheme not in {"http", "https"}:
            raise CallFailed(f'unsupported protocol scheme "{parts.scheme}"')
        fields = self.call.fields
        if _origin(parts) == _origin(urlsplit(self.url)):
            server = self.server
        else:
            fields = [pair for pair in fields if pair[0] not in _ABOUT_ORIGIN]
        call = replace(self.call, target=target, fields=fields)
        if answer.status not in _REPEATED:
            call = replace(call, method="GET", body=None)
        return _Request(server, url, call)


def _origin(parts: SplitResult) -> tuple[str, str | None, int | None]:
    default = DEFAULT_PORT if parts.scheme == "https" else _HTTP_PORT
    return parts.scheme, parts.hostname, parts.port or default


class BackendClient:
    """Calls servers. Handlers may share it; they call it from threads and greenlets."""

    def __init__(
        self,
        resolver: ServiceResolver,
        waiter: LoopWaiter,
        pool: Pool,
        breaks: BreaksCalls | None = None,
    ) -> None:
        self._resolver = resolver
        self._breaks = breaks
        self._waiter = waiter
        self._pool = pool
        self._limits = TimeLimits()

    def post(self, backend: Backend, body: bytes, timeout: float) -> bytes:
        """Returns the body of the response to a POST of JSON.

        `timeout` is in seconds, for the whole call. Raises CallFailed.
        """
        return self._waiter.wait(lambda: self.post_soon(backend, body, timeout))

    async def post_soon(self, backend: Backend, body: bytes, timeout: float) -> bytes:
        """Does what `post` does, in the event loop."""
        try:
            with self._limits.within(timeout):
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
            await break_call(how, address.netloc)
        request: _Request | None = _build_request(backend, address, body, seconds)
        for _ in range(MOST_REDIRECTS):
            assert request is not None
            answer = await fetch(request.server, request.call, self._pool, most=MOST_RESPONSE)
            request = request.follow(answer)
            if request is None:
                if not 200 <= answer.status < 300:
                    raise faults.status_fault(answer.status, answer.body)
                return answer.body
        raise CallFailed(f"stopped after {MOST_REDIRECTS} redirects")

    def _find_address(self, backend: Backend) -> Address:
        target = backend.target
        if isinstance(target, str):
            try:
                return backend.address
            except ValueError as error:
                raise CallFailed(f"Unparsable URL: {error}") from None
        try:
            return self._resolver.resolve(target.namespace, target.name, target.port)
        except errors.NotFound:
            raise CallFailed(f'service "{target.name}" not found') from None
        except errors.ApiError as error:
            raise CallFailed(error.message) from None


def _build_request(backend: Backend, address: Address, body: bytes, seconds: int) -> _Request:
    """Returns the first request. Raises CallFailed for certificates that are unusable."""
    context = find_context(Trust(backend.authority, backend.credentials.certificate))
    server = Server(address.host, address.port, context, backend.host)
    target = f"{backend.path_and_query}timeout={seconds}s"
    call = Call("POST", target, backend.fields, body, head_timeout=None, repeats=True)
    return _Request(server, f"https://{backend.parts.netloc}{target}", call)


def _asked(backend: Backend, timeout: float) -> str:
    """Returns the request, as errors name it."""
    return f'Post "{backend.url}?timeout={math.ceil(timeout)}s"'


def basic(username: str, password: str) -> bytes:
    """Returns the value of the header Authorization for a name and a password."""
    return b"Basic " + base64.b64encode(f"{username}:{password}".encode())
