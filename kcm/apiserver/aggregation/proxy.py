"""Passes requests on to the servers of other APIs, and their responses to the client.

Bodies are streams in both directions. A request that is no watch has the time that requests have; a
watch has it for the head of the response. Requests in flight are counted for each API, so that a
server that does not answer takes nothing from others.

Source: staging/src/k8s.io/kube-aggregator/pkg/apiserver/handler_proxy.go and
staging/src/k8s.io/apimachinery/pkg/util/proxy/upgradeaware.go, Kubernetes 1.33. Departures: at most
`MOST_STREAMS` watches and upgraded connections of one API; HTTP/1.1 only.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from typing import TypeVar
from urllib.parse import quote

from kcm import errors
from kcm.apiserver.aggregation.identity import NoHeader, identify
from kcm.apiserver.aggregation.index import RemoteApi
from kcm.apiserver.egress import forwarding, relaying
from kcm.apiserver.egress.relaying import ClientBody, ProxiedRequest
from kcm.apiserver.egress.services import ServiceResolver
from kcm.apiserver.http.limits import InFlight, Limits
from kcm.apiserver.http_errors import RequestTimeout
from kcm.http import transport
from kcm.http.connections import Pool, Server
from kcm.http.faults import CallFailed
from kcm.http.transport import Call, Fields, Response, Upgraded
from kcm.http.trust import find_context
from kcm.http.upgrades import TakeOver

MOST_CALLS = 200  # requests in flight of one API, watches excluded; as many that change something
MOST_STREAMS = 1000  # watches and upgraded connections of one API
_DEFAULT_TIMEOUT = 60.0  # seconds, if requests have no limit
# What Go leaves as it is in a path; % is not among them.
_PLAIN = "/!$&'()*+,;=:@-._~"
_REDIRECTED = "the backend attempted to redirect this request, which is not permitted"
_NO_HTTP2 = "an upgrade to h2c is not passed on"
_REPEATED = frozenset({"GET", "HEAD", "OPTIONS"})  # what changes nothing, as Go's client has it
_MOST_KNOWN = 1000  # APIs whose requests are counted before idle ones are dropped

T = TypeVar("T")


class ApiProxy:
    """Passes requests on. It belongs to the API server's event loop."""

    def __init__(
        self, resolver: ServiceResolver, certificate: bytes, limits: Limits, pool: Pool
    ) -> None:
        """`certificate` is the client's, with its key, in PEM."""
        self._resolver = resolver
        self._certificate = certificate
        self._timeout = limits.request_timeout or _DEFAULT_TIMEOUT
        self._pool = pool
        self._calls: dict[str, InFlight] = {}
        self._streams: dict[str, InFlight] = {}

    async def pass_on(self, api: RemoteApi, proxied: ProxiedRequest, *, long: bool) -> None:
        """Sends the response of the API's server, or what went wrong, to the client.

        `long` says that the request is a watch, or another stream without an end. Raises
        TooManyRequests, and RequestTimeout before anything is sent.
        """
        take_over = proxied.take_over
        try:
            server = self._find_server(api)
            streams = long or take_over is not None
            with self._count(api, streams=streams).admit(proxied.request.method, proxied.user):
                if take_over is not None:
                    await _Exchange(server, proxied, self._timeout).upgrade(take_over)
                    return
                pool = None if long else self._pool
                await _Exchange(server, proxied, self._timeout, pool).run(long=long)
        except _ProxyFault as fault:
            await _answer(proxied, fault)

    def _find_server(self, api: RemoteApi) -> Server:
        service = api.service
        try:
            if not api.available:
                raise _ProxyFault(503, "service unavailable")
            address = self._resolver.resolve(service.namespace, service.name, service.port)
            context = find_context(api.trust(self._certificate))
        except errors.ApiError:
            raise _ProxyFault(503, "service unavailable") from None
        except CallFailed as error:
            raise _ProxyFault(500, error.message) from None
        return Server(address.host, address.port, context, service.server_name)

    def _count(self, api: RemoteApi, *, streams: bool) -> InFlight:
        counts, most = (self._streams, MOST_STREAMS) if streams else (self._calls, MOST_CALLS)
        if api.name not in counts:
            if len(counts) >= _MOST_KNOWN:
                _drop_idle(counts)
            counts[api.name] = InFlight(most)
        return counts[api.name]


def _drop_idle(counts: dict[str, InFlight]) -> None:
    """Drops the counts of APIs without requests in flight, which may be gone."""
    for name in [name for name, count in counts.items() if not any(count.now.values())]:
        del counts[name]


@dataclass
class _Exchange:
    """A request that is passed on. `timeout` is in seconds. Without `pool`, the request has a
    connection of its own.
    """

    server: Server
    proxied: ProxiedRequest
    timeout: float
    pool: Pool | None = None
    started: bool = False  # whether the response has begun

    async def upgrade(self, take_over: TakeOver) -> None:
        """Connects client and server until one of them disconnects."""
        proxied = self.proxied
        fields = proxied.request.fields
        if forwarding.is_http2_upgrade(fields):
            raise _ProxyFault(400, _NO_HTTP2)
        fields = forwarding.fields_for_api(fields, proxied.peer) + forwarding.upgrade_fields(fields)
        async with self._open(transport.upgrade(self.server, self._call(fields))) as response:
            if isinstance(response, Upgraded):
                proxied.began(101)
                await relaying.join(take_over, response)
                return
            if response.status < 400:
                raise _ProxyFault(503, f"invalid upgrade response: status code {response.status}")
            try:
                async with asyncio.timeout(self.timeout):
                    await self._answer(response)
            except TimeoutError:
                return  # the head was sent, so the client sees that the rest is missing

    async def run(self, *, long: bool) -> None:
        """Passes request and response on until the response ends or the client disconnects.

        Raises RequestTimeout before anything is sent.
        """
        body = self.proxied.read_body()
        try:
            async with asyncio.timeout(None if long else self.timeout):
                await relaying.until_left(self._run(body), self.proxied.receive, body)
        except TimeoutError:
            if not self.started:
                raise RequestTimeout from None

    async def _run(self, body: ClientBody | None) -> None:
        fields = forwarding.fields_for_api(self.proxied.request.fields, self.proxied.peer)
        call = self._call(fields, body, self.proxied.length)
        async with self._open(transport.send(self.server, call, self.pool)) as response:
            redirects = 300 <= response.status < 400
            if redirects and response.header(b"location"):
                raise _ProxyFault(502, _REDIRECTED)
            self.started = True
            await self._answer(response)

    @asynccontextmanager
    async def _open(self, opened: AbstractAsyncContextManager[T]) -> AsyncIterator[T]:
        """Opens a response. Raises _ProxyFault, and RequestTimeout if the head takes too long."""
        try:
            async with asyncio.timeout(self.timeout) as limit:
                async with opened as response:
                    limit.reschedule(None)
                    yield response
        except TimeoutError:
            raise RequestTimeout from None
        except CallFailed as error:
            why = f"error trying to reach service: {error.message}"
            raise _ProxyFault(503, why) from None

    def _call(
        self, fields: Fields, body: ClientBody | None = None, length: int | None = None
    ) -> Call:
        proxied, request = self.proxied, self.proxied.request
        path = quote(request.path, safe=_PLAIN)
        query = forwarding.quote_query(request.query_string)
        try:
            fields = [*fields, *identify(proxied.user)]
        except NoHeader as error:
            why = f"error trying to reach service: {error.message}"
            raise _ProxyFault(503, why) from None
        return Call(
            request.method,
            f"{path}?{query}" if query else path,
            fields,
            body.pieces() if body is not None else None,
            length,
            head_timeout=None,
            repeats=body is None and request.method in _REPEATED,
        )

    async def _answer(self, response: Response) -> None:
        fields = forwarding.response_fields(response.status, response.fields)
        await self.proxied.start(response.status, fields)
        await self.proxied.copy(response.body)


class _ProxyFault(errors.KcmError):
    """A request that cannot be passed on, or whose response cannot."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


async def _answer(proxied: ProxiedRequest, fault: _ProxyFault) -> None:
    """Sends a response as Go's http.Error does."""
    body = f"{fault.message}\n".encode(errors="replace")
    fields = [
        (b"content-type", b"text/plain; charset=utf-8"),
        (b"x-content-type-options", b"nosniff"),
        (b"cache-control", b"no-cache, private"),
        (b"content-length", b"%d" % len(body)),
    ]
    await proxied.start(fault.code, fields)
    await proxied.finish(body)
