"""The ASGI app: checks, reads, hands over to a thread, answers.

Guarantees: no store call runs in the event loop, and at most `THREADS` run at
once; beyond `MOST_IN_FLIGHT` waiting requests clients are told to come back;
whatever fails, the client gets a Status.
"""

from __future__ import annotations

import asyncio
import gzip
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TypeVar

from starlette.types import Receive, Scope, Send

from kcm import errors
from kcm.apiserver import status, watching
from kcm.apiserver.accept import negotiate
from kcm.apiserver.access import Access
from kcm.apiserver.answers import Answer, json_answer
from kcm.apiserver.hub import Hub
from kcm.apiserver.refusals import TooManyRequests
from kcm.apiserver.request import Disconnected, Request, head_of, read_body
from kcm.apiserver.routes import Routes, is_page, is_watch
from kcm.apiserver.selection import Freshness
from kcm.apiserver.target import Target, parse
from kcm.apiserver.watching import Watch, WatchOptions, WatchResponse
from kcm.store import Store

T = TypeVar("T")

THREADS = 8  # store calls at a time; more only contend for the interpreter
MOST_IN_FLIGHT = 400  # requests, watches excepted; upstream's --max-requests-inflight
GZIP_FROM = 128 * 1024  # bytes, as upstream
_GZIP_LEVEL = 1


class ApiServer:
    """The app. `start` fills the caches, `end_watches` and `stop` end it."""

    def __init__(self, store: Store, access: Access) -> None:
        self.hub = Hub(store)
        self._access = access
        self._routes = Routes(store, self.hub)
        self._pool = ThreadPoolExecutor(THREADS, thread_name_prefix="kcm-api")
        self._in_flight = 0
        self._watches: set[Watch] = set()

    def start(self) -> None:
        """Begin to fill the watch caches."""
        self.hub.start()

    def end_watches(self) -> None:
        """End every stream; from the event loop."""
        for watch in list(self._watches):
            watch.stop()

    def stop(self) -> None:
        """End the threads."""
        self.hub.stop()
        self._pool.shutdown(cancel_futures=True)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        request = head_of(scope)
        try:
            self._access.check(request.path, request.headers)
            target = None if is_page(request.path) else parse(request.path)
            if target is not None and is_watch(request.method, target, request):
                await self._watch(request, target, scope, receive, send)
                return
            answer = await self._answer(request, target, receive)
        except Disconnected:
            return
        except Exception as error:  # noqa: BLE001 - no trace may leave the server
            answer = _failure(error)
        await _send(answer, request.method, send)

    async def _answer(self, request: Request, target: Target | None, receive: Receive) -> Answer:
        if self._in_flight >= MOST_IN_FLIGHT:
            raise TooManyRequests
        self._in_flight += 1
        try:
            request = replace(request, body=await read_body(receive))
            return await self._in_thread(lambda: self._handled(request, target))
        finally:
            self._in_flight -= 1

    def _handled(self, request: Request, target: Target | None) -> Answer:
        if target is None:
            answer = self._routes.page(request)
        else:
            answer = self._routes.objects(request, target)
        if len(answer.body) < GZIP_FROM or "gzip" not in request.header(b"accept-encoding"):
            return answer
        packed = gzip.compress(answer.body, _GZIP_LEVEL)
        return replace(answer, body=packed, headers={"content-encoding": "gzip"})

    async def _in_thread(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._pool, work)

    async def _watch(
        self, request: Request, target: Target, scope: Scope, receive: Receive, send: Send
    ) -> None:
        form = negotiate(request.header(b"accept"))
        options = WatchOptions.of(target, request.query, form)
        watch = Watch(self.hub, options, asyncio.get_running_loop())
        fresh = Freshness.of(request.query)
        try:
            await self._in_thread(lambda: watch.subscribe(fresh))
        except errors.Gone as error:  # told in the stream, as upstream's watch cache does
            await _send(Answer(watching.error_line(error)), "GET", send)
            return
        self._watches.add(watch)
        await WatchResponse(watch, form, self._watches.discard)(scope, receive, send)


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
    body = b"" if method == "HEAD" else answer.body
    await send({"type": "http.response.body", "body": body})


def _warning(text: str) -> bytes:
    quoted = text.replace("\\", "\\\\").replace('"', '\\"')
    printable = "".join(char if char.isprintable() else " " for char in quoted)
    return f'299 - "{printable}"'.encode()
