"""Passes a client's request on to a server: its body, the response, and an upgraded connection."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from starlette.types import Receive, Scope, Send

from kcm.apiserver.auth.attributes import User
from kcm.apiserver.http.connection import RELAY
from kcm.apiserver.request import Request
from kcm.http.faults import CallFailed
from kcm.http.transport import Fields, Upgraded
from kcm.http.upgrades import TakeOver, upgrade_of

_CHUNK = 64 * 1024  # bytes


@dataclass(frozen=True)
class ProxiedRequest:
    """A request that was authenticated and authorized, and the client's connection.

    `began` is called with the response's code before anything is sent.
    """

    request: Request
    user: User
    scope: Scope
    receive: Receive
    send: Send
    began: Callable[[int], None]

    @property
    def peer(self) -> str:
        """The client's address, "" if it is not available."""
        peer = self.scope.get("client")
        return str(peer[0]) if peer else ""

    @property
    def take_over(self) -> TakeOver | None:
        """What takes the client's connection over, None if the client asks for no upgrade."""
        return upgrade_of(self.scope)

    async def start(self, status: int, fields: Fields) -> None:
        """Sends the head of a response."""
        self.began(status)
        await self.send({"type": "http.response.start", "status": status, "headers": fields})

    async def finish(self, body: bytes = b"") -> None:
        """Sends the end of a response."""
        await self.send({"type": "http.response.body", "body": body})

    async def copy(self, body: AsyncIterator[bytes]) -> None:
        """Sends a response's body as it comes. The connection is closed if it breaks off: an end
        like any other would hide that a part is missing.
        """
        try:
            async for piece in body:
                await self.send({"type": "http.response.body", "body": piece, "more_body": True})
        except CallFailed:
            self._relay.abort()
            await asyncio.sleep(0)
            return
        await self.finish()

    def read_body(self) -> ClientBody | None:
        """Returns the request's body, None if it has none."""
        if not ClientBody.is_in(self.request):
            return None
        self._relay.relay_body()
        return ClientBody()

    @property
    def length(self) -> int | None:
        """The length of the request's body, None if the client does not say."""
        text = self.request.header(b"content-length").strip()
        chunked = self.request.header(b"transfer-encoding")
        return int(text) if text.isdigit() and not chunked else None

    @property
    def _relay(self) -> Any:
        return self.scope["extensions"][RELAY]


class ClientBody:
    """The body of a client's request as a stream, of which one piece at a time is in memory."""

    def __init__(self) -> None:
        self._queue: asyncio.Queue[bytes | None] = asyncio.Queue(maxsize=1)

    @staticmethod
    def is_in(request: Request) -> bool:
        """Reports whether a request has a body."""
        chunked = request.header(b"transfer-encoding")
        return bool(chunked) or request.header(b"content-length").strip() not in {"", "0"}

    async def put(self, piece: bytes | None) -> None:
        """Adds a piece, None for the end. Waits until the piece before was taken."""
        await self._queue.put(piece)

    async def pieces(self) -> AsyncIterator[bytes]:
        """Yields the pieces until the end."""
        while (piece := await self._queue.get()) is not None:
            yield piece


async def until_left(
    work: Coroutine[Any, Any, None], receive: Receive, body: ClientBody | None = None
) -> None:
    """Runs `work` until it ends or the client disconnects. Raises what it raises.

    What the client sends goes into `body`, and is dropped without one.
    """
    working = asyncio.ensure_future(work)
    reading = asyncio.ensure_future(_read(receive, body))
    try:
        await asyncio.wait({working, reading}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        ended = working.done()
        await _cancel({working, reading})
    if ended:
        working.result()


async def _read(receive: Receive, body: ClientBody | None) -> None:
    """Returns when the client disconnects."""
    while (message := await receive())["type"] != "http.disconnect":
        if body is not None:
            await body.put(message.get("body", b""))
            if not message.get("more_body"):
                await body.put(None)
                body = None


async def join(take_over: TakeOver, server: Upgraded) -> None:
    """Takes the client's connection over, and copies bytes in both directions.

    When one side closes its connection, both are closed.
    """
    reader, writer = take_over()
    writer.write(server.head)
    ways = {
        asyncio.ensure_future(_copy(reader, server.writer)),
        asyncio.ensure_future(_copy(server.reader, writer)),
    }
    try:
        await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
    finally:
        await _cancel(ways)
        writer.close()


async def _copy(source: asyncio.StreamReader, to: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while data := await source.read(_CHUNK):
            to.write(data)
            await to.drain()


async def _cancel(tasks: set[asyncio.Task[None]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
