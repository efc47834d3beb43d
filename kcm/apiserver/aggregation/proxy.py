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
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass
from http import HTTPStatus
from urllib.parse import quote

from starlette.types import Receive, Scope, Send

from kcm import errors
from kcm.apiserver.aggregation.client_body import ClientBody
from kcm.apiserver.aggregation.connections import (
    BrokenResponse,
    Call,
    ServerConnections,
    ServerResponse,
    ServerTrust,
    UntrustedServer,
)
from kcm.apiserver.aggregation.identity import (
    Headers,
    NoHeader,
    ProxyIdentity,
    forward_request_headers,
    forward_response_headers,
    forward_upgrade_headers,
    identify,
)
from kcm.apiserver.aggregation.index import RemoteApi
from kcm.apiserver.auth.users import User
from kcm.apiserver.backends import forwarding
from kcm.apiserver.backends.faults import CallFailed
from kcm.apiserver.backends.services import Address, ServiceResolver
from kcm.apiserver.http.limits import InFlight, Limits
from kcm.apiserver.http_errors import RequestTimeout
from kcm.apiserver.request import Disconnected, Request
from kcm.http.upgrades import TakeOver, upgrade_of

MOST_CALLS = 200  # requests in flight of one API, watches excluded; as many that change something
MOST_STREAMS = 1000  # watches and upgraded connections of one API
_DEFAULT_TIMEOUT = 60.0  # seconds, if requests have no limit
_CHUNK = 64 * 1024  # bytes
# What Go leaves as it is in a path; % is not among them.
_PLAIN = "/!$&'()*+,;=:@-._~"
_REDIRECTED = "the backend attempted to redirect this request, which is not permitted"
_NO_HTTP2 = "an upgrade to h2c is not passed on"
_MOST_KNOWN = 1000  # APIs whose requests are counted before idle ones are dropped

Began = Callable[[int], None]


@dataclass(frozen=True)
class ProxiedRequest:
    """A request that was authenticated and authorized, and the client's connection."""

    request: Request
    user: User
    scope: Scope
    receive: Receive
    send: Send
    long: bool = False  # a watch, or another stream without an end

    @property
    def target(self) -> bytes:
        """The path, as it was authorized, and the query."""
        path = quote(self.request.path, safe=_PLAIN)
        query = forwarding.quote_query(self.request.query_string)
        return (f"{path}?{query}" if query else path).encode()

    @property
    def client(self) -> str:
        """The client's address, "" if it is not known."""
        client = self.scope.get("client")
        return str(client[0]) if client else ""


class ApiProxy:
    """Passes requests on. It belongs to the API server's event loop."""

    def __init__(self, resolver: ServiceResolver, identity: ProxyIdentity, limits: Limits) -> None:
        self._resolver = resolver
        self._connections = ServerConnections(identity)
        self._timeout = limits.request_timeout or _DEFAULT_TIMEOUT
        self._calls: dict[str, InFlight] = {}
        self._streams: dict[str, InFlight] = {}

    async def close(self) -> None:
        """Closes all connections."""
        await self._connections.close()

    async def pass_on(self, api: RemoteApi, proxied: ProxiedRequest, began: Began) -> None:
        """Sends the response of the API's server, or what went wrong, to the client.

        `began` is called with the code of the response before it is sent. Raises TooManyRequests,
        and RequestTimeout before anything is sent.
        """
        try:
            if not api.available:
                raise _ProxyFault(503, "service unavailable")
            address = self._find_address(api)
            take_over = upgrade_of(proxied.scope)
            streams = proxied.long or take_over is not None
            with self._count(api, streams=streams).admit(proxied.request.method, proxied.user):
                if take_over is None:
                    await _Exchange(self, api, address, proxied, began).run()
                else:
                    await self._upgrade(api, address, proxied, take_over, began)
        except _ProxyFault as fault:
            began(fault.code)
            await _answer(proxied.send, fault.code, fault.message)

    def _find_address(self, api: RemoteApi) -> Address:
        service = api.service
        try:
            return self._resolver.resolve(service.namespace, service.name, service.port)
        except errors.ApiError:
            raise _ProxyFault(503, "service unavailable") from None

    def _count(self, api: RemoteApi, *, streams: bool) -> InFlight:
        counts, most = (self._streams, MOST_STREAMS) if streams else (self._calls, MOST_CALLS)
        if api.name not in counts:
            if len(counts) >= _MOST_KNOWN:
                _drop_idle(counts)
            counts[api.name] = InFlight(Limits(most, most))
        return counts[api.name]

    async def open(
        self, stack: AsyncExitStack, api: RemoteApi, address: Address, call: Call
    ) -> ServerResponse:
        """Returns the response to a request, which ends with the stack. Raises _ProxyFault and
        RequestTimeout.
        """
        to = ServerTrust(api.service.server_name, api.authority, api.insecure)
        try:
            async with asyncio.timeout(self._timeout):
                opened = self._connections.request(to, address, call)
                return await stack.enter_async_context(opened)
        except TimeoutError:
            raise RequestTimeout from None
        except UntrustedServer as error:
            raise _ProxyFault(500, error.message) from None
        except CallFailed as error:
            why = f"error trying to reach service: {error.message}"
            raise _ProxyFault(503, why) from None

    async def finish(self, work: Awaitable[None], *, long: bool) -> bool:
        """Waits for the work, a request's time at most unless it is `long`. Reports whether it
        ended in time.
        """
        try:
            async with asyncio.timeout(None if long else self._timeout):
                await work
        except TimeoutError:
            return False
        return True

    # --- upgrades

    async def _upgrade(
        self, api: RemoteApi, address: Address, proxied: ProxiedRequest, take_over: TakeOver,
        began: Began,
    ) -> None:  # fmt: skip
        if forwarding.is_http2_upgrade(proxied.request.fields):
            raise _ProxyFault(400, _NO_HTTP2)
        headers = forward_upgrade_headers(proxied.request.fields, proxied.client)
        headers += _identify(proxied.user)
        call = Call(proxied.request.method, proxied.target, headers, keep=False)
        async with AsyncExitStack() as stack:
            response = await self.open(stack, api, address, call)
            if response.status == HTTPStatus.SWITCHING_PROTOCOLS:
                began(response.status)
                await _join(take_over, response)
                return
            if response.status < HTTPStatus.BAD_REQUEST:
                why = f"invalid upgrade response: status code {response.status}"
                raise _ProxyFault(503, why)
            began(response.status)
            await self.finish(_send_response(response, proxied.send), long=False)


def _drop_idle(counts: dict[str, InFlight]) -> None:
    """Drops the counts of APIs without requests in flight, which may be gone."""
    for name in [name for name, count in counts.items() if not any(count.now.values())]:
        del counts[name]


class _Exchange:
    """One request that is no upgrade, with its response."""

    def __init__(
        self, proxy: ApiProxy, api: RemoteApi, address: Address, proxied: ProxiedRequest,
        began: Began,
    ) -> None:  # fmt: skip
        self._proxy = proxy
        self._api = api
        self._address = address
        self._proxied = proxied
        self._began = began
        self._started = False
        self._body = ClientBody(proxied.request, proxied.receive)

    async def run(self) -> None:
        """Ends with the response, or when the client leaves."""
        relaying = asyncio.ensure_future(self._relay())
        leaving = asyncio.ensure_future(self._body.wait_for_disconnect())
        try:
            waiting = asyncio.wait({relaying, leaving}, return_when=asyncio.FIRST_COMPLETED)
            in_time = await self._proxy.finish(_forget_result(waiting), long=self._proxied.long)
            if not in_time and not self._started:
                raise RequestTimeout
            if relaying.done():
                with suppress(Disconnected):
                    relaying.result()
        finally:
            for task in (relaying, leaving):
                task.cancel()
            await asyncio.gather(relaying, leaving, return_exceptions=True)

    async def _relay(self) -> None:
        async with AsyncExitStack() as stack:
            response = await self._proxy.open(stack, self._api, self._address, self._call())
            redirects = HTTPStatus.MULTIPLE_CHOICES <= response.status < HTTPStatus.BAD_REQUEST
            if redirects and any(name.lower() == b"location" for name, _ in response.headers):
                raise _ProxyFault(502, _REDIRECTED)
            self._started = True
            self._began(response.status)
            await _send_response(response, self._proxied.send)

    def _call(self) -> Call:
        request = self._proxied.request
        headers = forward_request_headers(request.fields, self._proxied.client)
        headers += _identify(self._proxied.user)
        if self._body.is_chunked:
            headers = [pair for pair in headers if pair[0] != b"content-length"]
            headers.append((b"transfer-encoding", b"chunked"))
        return Call(
            request.method,
            self._proxied.target,
            headers,
            body=None if self._body.is_empty else self._body.parts(),
            keep=not self._proxied.long,
        )


def _identify(user: User) -> Headers:
    try:
        return identify(user)
    except NoHeader as error:
        raise _ProxyFault(503, f"error trying to reach service: {error.message}") from None


async def _forget_result(work: Awaitable[object]) -> None:
    await work


class _ProxyFault(errors.KcmError):
    """A request that cannot be passed on, or whose response cannot."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


async def _answer(send: Send, code: int, words: str) -> None:
    """Sends a response as Go's http.Error does."""
    body = f"{words}\n".encode(errors="replace")
    headers: Headers = [
        (b"content-type", b"text/plain; charset=utf-8"),
        (b"x-content-type-options", b"nosniff"),
        (b"cache-control", b"no-cache, private"),
        (b"content-length", str(len(body)).encode()),
    ]
    await send({"type": "http.response.start", "status": code, "headers": headers})
    await send({"type": "http.response.body", "body": body})


async def _send_response(response: ServerResponse, send: Send) -> None:
    """Sends a response as it comes. One that breaks off is not completed, so that the client's
    connection is closed.
    """
    headers = forward_response_headers(response.headers)
    await send({"type": "http.response.start", "status": response.status, "headers": headers})
    try:
        async for part in response.body:
            await send({"type": "http.response.body", "body": part, "more_body": True})
    except BrokenResponse:
        return
    await send({"type": "http.response.body", "body": b""})


async def _join(take_over: TakeOver, response: ServerResponse) -> None:
    """Copies the bytes of an upgraded connection both ways until one side ends it."""
    lines = [b"%b: %b\r\n" % pair for pair in response.headers]
    reader, writer = take_over()
    writer.write(b"".join([b"HTTP/1.1 101 Switching Protocols\r\n", *lines, b"\r\n"]))
    ways = {
        asyncio.ensure_future(_copy_to_server(reader, response)),
        asyncio.ensure_future(_copy_to_client(response, writer)),
    }
    try:
        await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for way in ways:
            way.cancel()
        await asyncio.gather(*ways, return_exceptions=True)  # a connection may just have broken
        writer.close()


async def _copy_to_server(reader: asyncio.StreamReader, server: ServerResponse) -> None:
    while data := await reader.read(_CHUNK):
        await server.stream.write(data)


async def _copy_to_client(server: ServerResponse, writer: asyncio.StreamWriter) -> None:
    while data := await server.stream.read(_CHUNK):
        writer.write(data)
        await writer.drain()
