"""Handles the subresource `proxy` of pods, Services and nodes.

Bodies are streamed in both directions, and an upgraded connection is passed on byte by byte. A
server gets no request before the client's was authorized.

Source: pkg/registry/core/pod/rest/subresources.go, pkg/registry/core/service/proxy.go,
pkg/registry/core/node/rest/proxy.go and
staging/src/k8s.io/apimachinery/pkg/util/proxy/upgradeaware.go, Kubernetes 1.33. Departures: a
server has 10 minutes for the head of its response, and an upgrade request keeps its query.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from typing import Any, TypeVar
from urllib.parse import quote, urlsplit

import httptools
from starlette.types import Receive, Scope, Send

from kcm import errors
from kcm.apiserver.auth.users import User
from kcm.apiserver.backends import forwarding, joining, streaming
from kcm.apiserver.backends.services import ServiceUnavailable
from kcm.apiserver.backends.streaming import Incoming, Outgoing, Upgraded
from kcm.apiserver.cache.caches import FreshCaches
from kcm.apiserver.http.connection import RELAY
from kcm.apiserver.http.limits import InFlight, Limits
from kcm.apiserver.http_errors import MethodNotAllowed
from kcm.apiserver.nodes.kubelet import KubeletClient
from kcm.apiserver.proxying import headers, rewriting, targets
from kcm.apiserver.proxying.rewriting import MOST_HTML, Origin
from kcm.apiserver.proxying.targets import Target
from kcm.apiserver.request import Request
from kcm.apiserver.request_info import PROXIED, RequestInfo
from kcm.http.upgrades import TakeOver, upgrade_of
from kcm.store import Store

METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
HEAD_TIMEOUT = 600.0  # seconds until the head of a server's response is complete
MOST_AT_ONCE = 1000  # proxied requests; one user may have half of them
_SAFE = "/:@!$&'()*+,;=~"
_STATUSES = range(200, 600)

T = TypeVar("T")
Threaded = Callable[[Callable[[], T]], Awaitable[T]]


class UpgradeFailed(errors.ApiError):
    """The server cannot be reached, or does not upgrade the connection."""

    code = 500
    reason = "InternalError"


def is_proxy(info: RequestInfo) -> bool:
    """Reports whether a request is for the subresource `proxy`."""
    return info.subresource == "proxy" and info.resource.name in PROXIED


@dataclass(frozen=True)
class Asked:
    """A client's request as the app got it, and the functions that the app provides for it.

    `began` is called with the response's code before anything is sent. `threaded` runs a function
    in a thread.
    """

    request: Request
    info: RequestInfo
    user: User
    scope: Scope
    receive: Receive
    send: Send
    began: Callable[[int], None]
    threaded: Threaded[Any]

    @property
    def peer(self) -> str:
        """Returns the client's address, "" if it has none."""
        peer = self.scope.get("client")
        return str(peer[0]) if peer else ""


@dataclass(frozen=True)
class _Exchange:
    """A request that is passed on: where it goes, and under which path the client knows that."""

    target: Target
    request: Request
    path: str  # of the server, "" for its root without a slash
    prefix: str  # of the client's path, before the server's

    @property
    def url(self) -> str:
        query = forwarding.quote_query(self.request.query_string)
        return f"{self.target.url}{quote(self.path, _SAFE)}" + (f"?{query}" if query else "")

    @property
    def origin(self) -> Origin:
        host = urlsplit(self.target.url).netloc
        return Origin(host, self.request.header(b"host"), self.prefix)

    @property
    def length(self) -> int | None:
        text = self.request.header(b"content-length")
        return int(text) if text.isdigit() else None

    @property
    def has_body(self) -> bool:
        return bool(self.length) or bool(self.request.header(b"transfer-encoding"))


class ObjectProxy:
    """Passes requests on to pods, to the pods of Services, and to nodes."""

    def __init__(self, store: Store, caches: FreshCaches, kubelet: KubeletClient) -> None:
        self._store = store
        self._caches = caches
        self._kubelet = kubelet
        # As upstream, pods' certificates are not checked: none names an address of theirs.
        self._unverified = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        self._unverified.check_hostname = False
        self._unverified.verify_mode = ssl.CERT_NONE
        self._open = InFlight(Limits(MOST_AT_ONCE, MOST_AT_ONCE))

    def find(self, info: RequestInfo, request: Request) -> Target:
        """Returns where the request goes. It blocks.

        Raises BadRequest, KubeletUnreachable, MethodNotAllowed, NotFound, ServiceUnavailable and
        StoreUnavailable.
        """
        if request.method not in METHODS:
            raise MethodNotAllowed
        match info.resource.name:
            case "pods":
                return targets.find_pod(self._store, info.namespace, info.name)
            case "services":
                return targets.find_service(self._caches, info.namespace, info.name)
        return targets.find_node(self._store, info.name, tls=self._kubelet.tls)

    async def pass_on(self, target: Target, asked: Asked) -> None:
        """Sends the request to the target, and its response to the client.

        Raises ServiceUnavailable, TooManyRequests and UpgradeFailed before anything is sent.
        """
        exchange, request = _exchange(target, asked.info, asked.request), asked.request
        with self._open.admit("GET", asked.user):
            take_over = upgrade_of(asked.scope)
            if take_over is not None:
                await self._upgrade(exchange, asked, take_over)
            elif not exchange.path and request.method in {"GET", "HEAD"}:
                asked.began(301)
                await _redirect(request, asked.send)
            else:
                await _Passing(exchange, asked).run(self._tls(target))

    def _tls(self, target: Target) -> ssl.SSLContext | None:
        return self._kubelet.context if target.is_kubelet else self._unverified

    async def _upgrade(self, exchange: _Exchange, asked: Asked, take_over: TakeOver) -> None:
        request = exchange.request
        if forwarding.is_http2_upgrade(request.fields):
            raise errors.BadRequest("an upgrade to h2c is not passed on")
        fields = headers.of_upgrade(request.fields, asked.peer)
        fields += streaming.bearer(exchange.target.token).items()
        try:
            limited = exchange.target.to_global
            outgoing = Outgoing(request.method, exchange.url, fields, to_global=limited)
            async with streaming.send(outgoing, self._tls(exchange.target)) as response:
                if isinstance(response, Upgraded):
                    asked.began(101)
                    await joining.join(take_over, response)
                    return
                if response.status < 400:
                    raise UpgradeFailed(f"invalid upgrade response: status code {response.status}")
                answering = _Passing(exchange, asked).answer(response)
                await joining.until_left(answering, asked.receive)
        except streaming.ExchangeError as error:
            raise UpgradeFailed(f"error dialing backend: {error}") from None


def _exchange(target: Target, info: RequestInfo, request: Request) -> _Exchange:
    asked = request.path
    # api, v1, namespaces, its name, pods, its name, proxy
    count = 7 if info.namespace else 5
    rest = asked.lstrip("/").split("/", count)[count:]
    path = rewriting.join("", f"/{rest[0]}") if rest else ""
    prefix = asked.removesuffix(path) if path else asked
    return _Exchange(target, request, path, prefix)


async def _redirect(request: Request, send: Send) -> None:
    query = forwarding.quote_query(request.query_string)
    where = (f"{quote(request.path, _SAFE)}/" + (f"?{query}" if query else "")).encode()
    fields = [(b"location", where), (b"content-length", b"0")]
    await send({"type": "http.response.start", "status": 301, "headers": fields})
    await send({"type": "http.response.body", "body": b""})


class _Passing:
    """Passes one request on that is no upgrade."""

    def __init__(self, exchange: _Exchange, asked: Asked) -> None:
        self._exchange = exchange
        self._asked = asked
        self._send = asked.send
        self._relay = (asked.scope.get("extensions") or {}).get(RELAY)

    async def run(self, tls: ssl.SSLContext | None) -> None:
        """Passes request and response on until the response ends or the client disconnects.

        Raises ServiceUnavailable before anything is sent.
        """
        body: joining.ClientBody | None = None
        if self._exchange.has_body:
            body = joining.ClientBody()
            if self._relay is not None:
                self._relay.relay_body()
        work = self._run(self._outgoing(body.pieces() if body else None), tls)
        await joining.until_left(work, self._asked.receive, body)

    def _outgoing(self, body: AsyncIterator[bytes] | None) -> Outgoing:
        exchange, request = self._exchange, self._exchange.request
        forwarded = rewriting.join(exchange.prefix, exchange.path)
        fields = headers.of_request(request.fields, self._asked.peer, quote(forwarded, _SAFE))
        fields += streaming.bearer(exchange.target.token).items()
        length = exchange.length if body is not None or exchange.length == 0 else None
        limited = exchange.target.to_global
        return Outgoing(
            request.method, exchange.url, fields, body, length, HEAD_TIMEOUT, to_global=limited
        )

    async def _run(self, outgoing: Outgoing, tls: ssl.SSLContext | None) -> None:
        try:
            async with streaming.send(outgoing, tls) as response:
                if isinstance(response, Upgraded):
                    raise ServiceUnavailable("error trying to reach service: unexpected upgrade")
                await self.answer(response)
        except streaming.ExchangeError as error:
            raise ServiceUnavailable(f"error trying to reach service: {error}") from None

    async def answer(self, response: Incoming) -> None:
        """Sends the response to the client."""
        if response.status not in _STATUSES:
            raise ServiceUnavailable(
                f"error trying to reach service: malformed HTTP status code {response.status}"
            )
        fields = headers.of_response(response.status, response.fields)
        moved = response.header("location")
        if moved:
            moved = self._exchange.origin.rewrite(moved)
            fields = [(n, moved if n == "location" else v) for n, v in fields]
        elif self._is_page(response):
            await self._send_page(response, fields)
            return
        await self._start(response.status, fields)
        await self._copy(response.body)

    def _is_page(self, response: Incoming) -> bool:
        kind = response.header("content-type").partition(";")[0].strip()
        return kind == "text/html" and self._exchange.request.method != "HEAD"

    async def _send_page(self, response: Incoming, fields: list[tuple[str, str]]) -> None:
        """Sends a page with its links rewritten, or as it is if it is too large."""
        page = bytearray()
        try:
            async for piece in response.body:
                page += piece
                if len(page) > MOST_HTML:
                    break
        except (OSError, httptools.HttpParserError) as error:
            raise ServiceUnavailable(f"error trying to reach service: {error}") from None
        if len(page) > MOST_HTML:
            await self._start(response.status, fields)
            await self._piece(bytes(page))
            await self._copy(response.body)
            return
        encoding, origin = response.header("content-encoding"), self._exchange.origin
        changed = await self._asked.threaded(
            lambda: rewriting.rewrite_page(bytes(page), encoding, origin)
        )
        body = bytes(page) if changed is None else changed
        fields = [(name, value) for name, value in fields if name != "content-length"]
        await self._start(response.status, [*fields, ("content-length", str(len(body)))])
        await self._send({"type": "http.response.body", "body": body})

    async def _start(self, status: int, fields: list[tuple[str, str]]) -> None:
        self._asked.began(status)
        raw = [
            (name.encode("latin-1"), value.encode("latin-1", "replace")) for name, value in fields
        ]
        raw.insert(0, (b"cache-control", b"no-cache, private"))
        await self._send({"type": "http.response.start", "status": status, "headers": raw})

    async def _piece(self, piece: bytes) -> None:
        await self._send({"type": "http.response.body", "body": piece, "more_body": True})

    async def _copy(self, body: AsyncIterator[bytes]) -> None:
        try:
            async for piece in body:
                await self._piece(piece)
        except (OSError, httptools.HttpParserError):
            if self._relay is not None:  # an end like any other would hide that a part is missing
                self._relay.abort()
                await asyncio.sleep(0)
            return
        await self._send({"type": "http.response.body", "body": b""})
