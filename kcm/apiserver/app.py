"""The ASGI app: authorizes a request, reads it, runs its handler in a thread, and answers.

Guarantees: nothing is read or looked up for a request before the gate admitted it. No store call
runs in the event loop, and at most `THREADS` run at once. Beyond the limits in flight clients are
told to come back. A body is read before it takes a place, and one user can take neither all places
nor all threads. Whatever fails, the client gets a Status.
"""

from __future__ import annotations

import asyncio
import gzip
from collections.abc import Coroutine
from dataclasses import replace
from typing import Any

from starlette.types import Receive, Scope, Send

from kcm import errors
from kcm.api import scheme
from kcm.api.apiextensions_v1 import CustomResourceDefinition
from kcm.apiserver.auth.access import AccessRules
from kcm.apiserver.auth.authorizer import Authorizer, Masters
from kcm.apiserver.auth.gate import Gate, RequestState
from kcm.apiserver.auth.rbac import RBAC
from kcm.apiserver.auth.users import ANYBODY
from kcm.apiserver.bootstrap.definitions import DefinitionLoop
from kcm.apiserver.cache.hub import Hub
from kcm.apiserver.http.accept import negotiate
from kcm.apiserver.http.answers import Answer, json_answer
from kcm.apiserver.http.limits import Bodies, InFlight, Limits
from kcm.apiserver.http.threads import Threads
from kcm.apiserver.metrics import ServerMetrics
from kcm.apiserver.nodes.kubelet import KubeletClient
from kcm.apiserver.nodes.logs import Logs, is_log
from kcm.apiserver.nodes.streams import NodeStreams, is_proxy, is_stream
from kcm.apiserver.objects import status, watching
from kcm.apiserver.objects.selection import Freshness
from kcm.apiserver.objects.watching import HttpWatch, WatchOptions, WatchResponse
from kcm.apiserver.refusals import PathNotFound, RequestTimeout
from kcm.apiserver.request import Disconnected, Request, head_of, read_body
from kcm.apiserver.routes import Routes, is_page, is_watch
from kcm.apiserver.target import RequestTarget, parse
from kcm.store import Store

THREADS = 8  # store calls at a time; more would only contend for the interpreter
GZIP_FROM = 128 * 1024  # bytes, as upstream
_GZIP_LEVEL = 1
_PIECE = 256 * 1024  # bytes of an answer that are sent at once


class ApiServer:
    """The ASGI app. `start` fills its caches; `end_watches` and `stop` end it."""

    def __init__(
        self,
        store: Store,
        access: AccessRules,
        authorizer: Authorizer | None = None,
        limits: Limits | None = None,
        kubelet: KubeletClient | None = None,
    ) -> None:
        """RBAC decides where no `authorizer` is given."""
        self.hub = Hub(store)
        self._settling = DefinitionLoop(store, self.hub)
        self._limits = limits or Limits()
        self._in_flight = InFlight(self._limits)
        self._bodies = Bodies()
        self._metrics = ServerMetrics(self.hub, self._in_flight)
        decides = authorizer or Masters(RBAC(self.hub))
        self._gate = Gate(access, decides, self._metrics)
        self._routes = Routes(store, self.hub, self._metrics, self._gate)
        self._threads = Threads(THREADS, "kcm-api")
        self._watches: set[HttpWatch] = set()
        client = kubelet or KubeletClient()
        self._logs = Logs(store, client)
        self._passing = NodeStreams(store, client)
        self._streams: set[asyncio.Task[None]] = set()  # streams that are passed on from kubelets

    def start(self) -> None:
        """Starts to fill the watch caches."""
        self._threads.start()
        self.hub.start()
        self._settling.start()

    def end_watches(self) -> None:
        """Ends every stream. It is called in the event loop."""
        for watch in list(self._watches):
            watch.stop()
        for stream in self._streams:
            stream.cancel()

    def stop(self) -> None:
        """Ends the threads."""
        self._settling.stop()
        self.hub.stop()
        self._threads.stop()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        case = RequestState(head_of(scope))
        try:
            self._gate.admit(case, scope)
            if not is_page(case.request.path):
                self._gate.set_target(case, await self._target(case))
            if case.asked is not None and is_watch(case):
                await self._watch(case, scope, receive, send)
                return
            if case.target is not None and is_log(case.request.method, case.target):
                await self._log(case, case.target, receive, send)
                return
            if case.target is not None and (is_stream(case.target) or is_proxy(case.target)):
                await self._stream(case, case.target, scope, receive, send)
                return
        except Exception as error:  # noqa: BLE001 - no trace may leave the server
            answer = _failure(error)
            self._metrics.refused(case, answer.code)
        else:
            try:
                answer = await self._answer_and_count(case, receive)
            except Disconnected:
                return
        await _send(answer, case.request.method, send)

    async def _target(self, case: RequestState) -> RequestTarget:
        path = case.request.path
        try:
            return parse(path)
        except PathNotFound:  # perhaps a custom kind that was defined a moment ago
            await self._threads.run(self._learn_kinds, case.real or ANYBODY)
            return parse(path)

    async def _answer_and_count(self, case: RequestState, receive: Receive) -> Answer:
        with self._metrics.request(case) as answered:
            try:
                answer = await self._answer(case, receive)
            except Disconnected:
                raise
            except Exception as error:  # noqa: BLE001 - no trace may leave the server
                answer = _failure(error)
            answered(answer.code)
            return answer

    async def _answer(self, case: RequestState, receive: Receive) -> Answer:
        user = case.real or ANYBODY
        try:
            async with asyncio.timeout(self._limits.request_timeout or None):
                with self._bodies.held(user) as held:
                    with self._bodies.coming(user):
                        if body := await read_body(receive, held.add):
                            case = replace(case, request=replace(case.request, body=body))
                    with self._in_flight.one(case.request.method, user):
                        return await self._threads.run(lambda: self._handle(case), user)
        except TimeoutError:
            raise RequestTimeout from None

    def _handle(self, case: RequestState) -> Answer:
        request = case.request
        if case.target is None:
            answer = self._page(request)
        else:
            answer = self._routes.objects(request, case.target, self._gate.caller(case))
        if len(answer.body) < GZIP_FROM or "gzip" not in request.header(b"accept-encoding"):
            return answer
        packed = gzip.compress(answer.body, _GZIP_LEVEL)
        return replace(answer, body=packed, headers={"content-encoding": "gzip"})

    def _page(self, request: Request) -> Answer:
        try:
            return self._routes.page(request)
        except PathNotFound:
            if not request.path.startswith("/apis/"):
                raise
            self._learn_kinds()  # perhaps a group that was defined a moment ago
            return self._routes.page(request)

    def _learn_kinds(self) -> None:
        """Waits until every kind is known whose definition was written before this call.

        The hub learns kinds as it reads. Raises StoreUnavailable.
        """
        self.hub.fresh(scheme.resource_of(CustomResourceDefinition))

    async def _watch(self, case: RequestState, scope: Scope, receive: Receive, send: Send) -> None:
        request, target = case.request, case.target
        assert target is not None
        form = negotiate(request.header(b"accept"))
        options = WatchOptions.of(target, request.query, form)
        watch = HttpWatch(self.hub, options, asyncio.get_running_loop())
        fresh = Freshness.of(request.query)
        try:
            await self._threads.run(lambda: watch.subscribe(fresh), case.real or ANYBODY)
        except errors.Gone as error:  # reported in the stream, as upstream's watch cache does
            await _send(Answer(watching.error_line(error)), "GET", send)
            return
        self._watches.add(watch)
        self._metrics.count(case, 200)
        await WatchResponse(watch, form, self._watches.discard)(scope, receive, send)

    async def _log(
        self, case: RequestState, target: RequestTarget, receive: Receive, send: Send
    ) -> None:
        where = await self._threads.run(
            lambda: self._logs.find(target, case.request), case.real or ANYBODY
        )
        await self._until_stop(
            self._logs.pass_on(where, receive, send, lambda: self._metrics.count(case, 200))
        )

    async def _stream(
        self, case: RequestState, target: RequestTarget, scope: Scope, receive: Receive, send: Send
    ) -> None:
        request = case.request
        where = await self._threads.run(
            lambda: self._passing.find(target, request), case.real or ANYBODY
        )
        if is_proxy(target):
            proxied = self._passing.proxy(
                where, receive, send, lambda: self._metrics.count(case, 200, 0.0)
            )
            await self._until_stop(proxied)
        else:
            await self._until_stop(
                self._passing.connect(
                    where, request, scope, lambda: self._metrics.count(case, 101, 0.0)
                )
            )

    async def _until_stop(self, work: Coroutine[Any, Any, None]) -> None:
        stream = asyncio.ensure_future(work)
        self._streams.add(stream)
        stream.add_done_callback(self._streams.discard)
        await stream


def _failure(error: Exception) -> Answer:
    body = status.failure(error)
    retry = body.get("details", {}).get("retryAfterSeconds")
    headers = {"retry-after": str(retry)} if retry else {}
    return replace(json_answer(body, int(body["code"])), headers=headers)


async def _send(answer: Answer, method: str, send: Send) -> None:
    headers = [
        (b"content-type", answer.content_type.encode()),
        (b"content-length", str(len(answer.body)).encode()),
        (b"cache-control", b"no-cache, private"),
        *((name.encode(), value.encode()) for name, value in answer.headers.items()),
        *((b"warning", _warning(text)) for text in answer.warnings),
    ]
    await send({"type": "http.response.start", "status": answer.code, "headers": headers})
    body = memoryview(b"" if method == "HEAD" else answer.body)
    # In pieces: asyncio notices a client that does not read only between writes.
    while len(body) > _PIECE:
        await send({"type": "http.response.body", "body": body[:_PIECE], "more_body": True})
        body = body[_PIECE:]
    await send({"type": "http.response.body", "body": body})


def _warning(text: str) -> bytes:
    quoted = text.replace("\\", "\\\\").replace('"', '\\"')
    printable = "".join(char if char.isprintable() else " " for char in quoted)
    return f'299 - "{printable}"'.encode()
