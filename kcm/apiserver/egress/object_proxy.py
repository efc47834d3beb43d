"""Handles the subresource `proxy` of pods, Services and nodes.

Bodies are streamed in both directions, and an upgraded connection is passed on byte by byte. A
server gets no request before the client's was authorized.

Source: pkg/registry/core/pod/rest/subresources.go, pkg/registry/core/service/proxy.go,
pkg/registry/core/node/rest/proxy.go and
staging/src/k8s.io/apimachinery/pkg/util/proxy/upgradeaware.go, Kubernetes 1.33. Departures: a
server has 10 minutes for the head of its response, and an upgrade request keeps its query.
"""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from typing import Any, TypeVar
from urllib.parse import quote, urlsplit

from kcm import errors
from kcm.apiserver.cache.caches import FreshCaches
from kcm.apiserver.egress import forwarding, relaying, rewriting, targets
from kcm.apiserver.egress.kubelet import KubeletClient
from kcm.apiserver.egress.relaying import ClientBody, ProxiedRequest
from kcm.apiserver.egress.rewriting import MOST_HTML, Origin
from kcm.apiserver.egress.services import ServiceUnavailable
from kcm.apiserver.egress.targets import Target
from kcm.apiserver.http.limits import InFlight
from kcm.apiserver.http_errors import MethodNotAllowed
from kcm.apiserver.request import Request
from kcm.apiserver.request_info import PROXIED, RequestInfo
from kcm.http import transport
from kcm.http.connections import Server
from kcm.http.faults import CallFailed
from kcm.http.transport import Call, Fields, Response, Upgraded, bearer
from kcm.http.trust import Trust, find_context
from kcm.http.upgrades import TakeOver
from kcm.store import Store

METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
HEAD_TIMEOUT = 600.0  # seconds until the head of a server's response is complete
MOST_AT_ONCE = 1000  # proxied requests; one user may have half of them
_SAFE = "/:@!$&'()*+,;=~"
_STATUSES = range(200, 600)
_CACHE_CONTROL = (b"cache-control", b"no-cache, private")

T = TypeVar("T")
Threaded = Callable[[Callable[[], T]], Awaitable[T]]  # runs a function in a thread


class UpgradeFailed(errors.ApiError):
    """The server cannot be reached, or does not upgrade the connection."""

    code = 500
    reason = "InternalError"


def is_proxy(info: RequestInfo) -> bool:
    """Reports whether a request is for the subresource `proxy`."""
    return info.subresource == "proxy" and info.resource.name in PROXIED


class ObjectProxy:
    """Passes requests on to pods, to the pods of Services, and to nodes."""

    def __init__(self, store: Store, caches: FreshCaches, kubelet: KubeletClient) -> None:
        self._store = store
        self._caches = caches
        self._kubelet = kubelet
        self._open = InFlight(MOST_AT_ONCE)

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

    async def pass_on(
        self, target: Target, info: RequestInfo, proxied: ProxiedRequest, threaded: Threaded[Any]
    ) -> None:
        """Sends the request to the target, and its response to the client.

        Raises ServiceUnavailable, TooManyRequests and UpgradeFailed before anything is sent.
        """
        exchange = _Exchange(target, self._tls(target), info, proxied, threaded)
        with self._open.admit("GET", proxied.user):
            if (take_over := proxied.take_over) is not None:
                await exchange.upgrade(take_over)
            elif not exchange.path and proxied.request.method in {"GET", "HEAD"}:
                await _redirect(proxied)
            else:
                await exchange.run()

    def _tls(self, target: Target) -> ssl.SSLContext | None:
        # As upstream, pods' certificates are not checked: none names an address of theirs.
        return self._kubelet.context if target.is_kubelet else find_context(Trust(insecure=True))


async def _redirect(proxied: ProxiedRequest) -> None:
    request = proxied.request
    query = forwarding.quote_query(request.query_string)
    where = (f"{quote(request.path, _SAFE)}/" + (f"?{query}" if query else "")).encode()
    await proxied.start(301, [(b"location", where), (b"content-length", b"0")])
    await proxied.finish()


@dataclass(frozen=True)
class _Exchange:
    """A request that is passed on: where it goes, and who sent it."""

    target: Target
    tls: ssl.SSLContext | None
    info: RequestInfo
    proxied: ProxiedRequest
    threaded: Threaded[Any]

    @property
    def path(self) -> str:
        """The path at the server, "" for its root without a slash."""
        # api, v1, namespaces, its name, pods, its name, proxy
        count = 7 if self.info.namespace else 5
        rest = self.proxied.request.path.lstrip("/").split("/", count)[count:]
        return rewriting.join("", f"/{rest[0]}") if rest else ""

    @property
    def prefix(self) -> str:
        """The part of the client's path before the server's."""
        asked, path = self.proxied.request.path, self.path
        return asked.removesuffix(path) if path else asked

    async def upgrade(self, take_over: TakeOver) -> None:
        """Connects client and server until one of them disconnects.

        Raises BadRequest and UpgradeFailed before anything is sent.
        """
        proxied = self.proxied
        if forwarding.is_http2_upgrade(proxied.request.fields):
            raise errors.BadRequest("an upgrade to h2c is not passed on")
        fields = forwarding.upgrade_for_object(proxied.request.fields, proxied.peer)
        try:
            async with transport.upgrade(*self._call(fields)) as response:
                if isinstance(response, Upgraded):
                    proxied.began(101)
                    await relaying.join(take_over, response)
                    return
                if response.status < 400:
                    raise UpgradeFailed(f"invalid upgrade response: status code {response.status}")
                await relaying.until_left(self._answer(response), proxied.receive)
        except CallFailed as error:
            raise UpgradeFailed(f"error dialing backend: {error.message}") from None

    async def run(self) -> None:
        """Passes request and response on until the response ends or the client disconnects.

        Raises ServiceUnavailable before anything is sent.
        """
        body = self.proxied.read_body()
        await relaying.until_left(self._run(body), self.proxied.receive, body)

    async def _run(self, body: ClientBody | None) -> None:
        request = self.proxied.request
        forwarded = quote(rewriting.join(self.prefix, self.path), _SAFE)
        fields = forwarding.fields_for_object(request.fields, self.proxied.peer, forwarded)
        try:
            async with transport.send(*self._call(fields, body, self.proxied.length)) as response:
                await self._answer(response)
        except CallFailed as error:
            raise ServiceUnavailable(f"error trying to reach service: {error.message}") from None

    def _call(
        self, fields: Fields, body: ClientBody | None = None, length: int | None = None
    ) -> tuple[Server, Call]:
        request, target = self.proxied.request, self.target
        query = forwarding.quote_query(request.query_string)
        server = Server.of(urlsplit(target.url), self.tls, to_global=target.to_global)
        call = Call(
            request.method,
            (quote(self.path, _SAFE) or "/") + (f"?{query}" if query else ""),
            [*fields, *bearer(target.token)],
            body.pieces() if body is not None else None,
            length,
            HEAD_TIMEOUT,
        )
        return server, call

    async def _answer(self, response: Response) -> None:
        """Sends the response to the client."""
        if response.status not in _STATUSES:
            raise CallFailed(f"malformed HTTP status code {response.status}")
        fields = forwarding.response_fields(response.status, response.fields)
        if moved := response.header(b"location"):
            led = self._origin.rewrite(moved).encode("latin-1", "replace")
            fields = [(name, led if name == b"location" else value) for name, value in fields]
        elif self._is_page(response):
            await self._send_page(response, fields)
            return
        await self._start(response, fields)
        await self.proxied.copy(response.body)

    @property
    def _origin(self) -> Origin:
        host = urlsplit(self.target.url).netloc
        return Origin(host, self.proxied.request.header(b"host"), self.prefix)

    def _is_page(self, response: Response) -> bool:
        kind = response.header(b"content-type").partition(";")[0].strip()
        return kind == "text/html" and self.proxied.request.method != "HEAD"

    async def _send_page(self, response: Response, fields: Fields) -> None:
        """Sends a page with its links rewritten, or as it is if it is too large."""
        page = bytearray()
        async for piece in response.body:
            page += piece
            if len(page) > MOST_HTML:
                await self._start(response, fields)
                await self.proxied.copy(_chain(bytes(page), response.body))
                return
        encoding, origin = response.header(b"content-encoding"), self._origin
        changed = await self.threaded(lambda: rewriting.rewrite_page(bytes(page), encoding, origin))
        body = bytes(page) if changed is None else changed
        fields = [pair for pair in fields if pair[0] != b"content-length"]
        await self._start(response, [*fields, (b"content-length", b"%d" % len(body))])
        await self.proxied.finish(body)

    async def _start(self, response: Response, fields: Fields) -> None:
        await self.proxied.start(response.status, [_CACHE_CONTROL, *fields])


async def _chain(first: bytes, rest: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    yield first
    async for piece in rest:
        yield piece
