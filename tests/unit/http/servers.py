"""Servers that answer a client of HTTP/1.1 as a test says."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress

from kcm.http.connections import Server

EMPTY = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"
Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def server(serve: Serve) -> AsyncIterator[Server]:
    """Yields a server, and waits until it is done with its only client."""
    done = asyncio.Event()

    async def serve_once(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            await serve(reader, writer)
            writer.close()
            await writer.wait_closed()
        done.set()

    listening = await asyncio.start_server(serve_once, "127.0.0.1", 0)
    async with listening:
        try:
            yield Server("127.0.0.1", listening.sockets[0].getsockname()[1])
        finally:
            await asyncio.wait_for(done.wait(), 10)
            for _ in range(3):  # the transports are closed in the next turns of the loop
                await asyncio.sleep(0)


class Several:
    """A server of several connections, each of which answers the given answers in turn."""

    def __init__(self, *answers: bytes) -> None:
        self._answers = answers
        self.asked: list[int] = []  # how many requests each connection got
        self._serving: list[asyncio.Future[None]] = []

    async def __aenter__(self) -> Several:
        self._listening = await asyncio.start_server(self._begin, "127.0.0.1", 0)
        self.where = Server("127.0.0.1", self._listening.sockets[0].getsockname()[1])
        return self

    async def __aexit__(self, *raised: object) -> None:
        self._listening.close()
        await asyncio.gather(*self._serving)
        await turn()

    def _begin(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._serving.append(asyncio.ensure_future(self._serve(reader, writer)))

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        number = len(self.asked)
        self.asked.append(0)
        with suppress(OSError, EOFError):
            for answer in self._answers:
                await reader.readuntil(b"\r\n\r\n")
                self.asked[number] += 1
                writer.write(answer)
        writer.close()
        with suppress(OSError):
            await writer.wait_closed()


async def turn() -> None:
    """Lets the event loop see what the other side has done to connections."""
    for _ in range(20):
        await asyncio.sleep(0)
