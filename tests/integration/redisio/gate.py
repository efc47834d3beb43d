"""A proxy between clients and the server that can lose bytes, in the event loop of a test."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Self

Script = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


class Gate:
    """Forwards connections to the server's socket, except those that a script answers.

    Each of the first connections goes to one of `scripts`; a script may call `forward`.
    """

    def __init__(self, path: Path, upstream: str) -> None:
        self.path = path
        self.url = f"unix://{path}"
        self.scripts: list[Script] = []
        self.connections = 0
        self._upstream = upstream
        self._open: set[asyncio.StreamWriter] = set()  # of clients
        self._deaf: set[asyncio.StreamWriter] = set()  # what they send is lost
        self._mute: set[asyncio.StreamWriter] = set()  # what they are sent is lost
        self._tasks: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_unix_server(self._serve, self.path)
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        self.drop()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._server.wait_closed()

    def lose_replies(self) -> None:
        """Drops the replies on the connections that are open now; commands are still forwarded."""
        self._mute |= self._open

    def fall_silent(self) -> None:
        """Drops commands and replies on the connections that are open now, and keeps these open."""
        self._mute |= self._open
        self._deaf |= self._open

    def drop(self) -> None:
        """Closes the connections that are open now."""
        for writer in self._open:
            writer.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self._open.add(writer)
        self.connections += 1
        script = self.scripts.pop(0) if self.scripts else self.forward
        try:
            await script(reader, writer)
        except (ConnectionError, asyncio.CancelledError):
            pass  # one of the ends went away, or the test is over
        finally:
            writer.close()
            self._open.discard(writer)
            self._tasks.discard(task)

    async def forward(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Forwards one connection until the client or the server closes it."""
        replies, server = await asyncio.open_unix_connection(self._upstream)
        back = asyncio.create_task(self._pump(replies, writer, self._mute, writer))
        try:
            await self._pump(reader, server, self._deaf, writer)
        finally:
            back.cancel()
            server.close()
            await asyncio.gather(back, return_exceptions=True)

    async def _pump(
        self,
        source: asyncio.StreamReader,
        sink: asyncio.StreamWriter,
        lost: set[asyncio.StreamWriter],
        client: asyncio.StreamWriter,
    ) -> None:
        while data := await source.read(65536):
            if client not in lost:
                sink.write(data)
                await sink.drain()
