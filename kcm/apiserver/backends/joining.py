"""Joins a client's connection with a server's, until one of them is closed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import suppress
from typing import Any

from starlette.types import Receive

from kcm.apiserver.backends.streaming import Upgraded
from kcm.http.upgrades import Taken, TakeOver

_CHUNK = 64 * 1024  # bytes


async def join(take_over: TakeOver, server: Upgraded) -> None:
    """Takes the client's connection over, and copies bytes in both directions.

    When one side closes its connection, both are closed.
    """
    taken: Taken = take_over()
    taken[1].write(server.head)
    ways = {
        asyncio.ensure_future(_copy(taken[0], server.writer)),
        asyncio.ensure_future(_copy(server.reader, taken[1])),
    }
    try:
        await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
    finally:
        await _cancel(ways)
        taken[1].close()


async def _copy(source: asyncio.StreamReader, to: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while data := await source.read(_CHUNK):
            to.write(data)
            await to.drain()


class ClientBody:
    """The body of a client's request as a stream, of which one piece at a time is in memory."""

    def __init__(self) -> None:
        self._queue: asyncio.Queue[bytes | None] = asyncio.Queue(maxsize=1)

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


async def _cancel(tasks: set[asyncio.Task[None]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
