"""The body of a client's request as a stream, and the client's leaving."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from starlette.types import Receive

from kcm.apiserver.request import Disconnected, Request


class ClientBody:
    """Reads a request's body while it is passed on, without holding more than one part of it."""

    def __init__(self, request: Request, receive: Receive) -> None:
        length = request.header(b"content-length").strip()
        self.is_chunked = bool(request.header(b"transfer-encoding"))
        self.is_empty = not self.is_chunked and length in {"", "0"}
        self._receive = receive
        self._read = asyncio.Event()  # set when nothing of the body is left
        if self.is_empty:
            self._read.set()

    async def parts(self) -> AsyncIterator[bytes]:
        """Yields the body. Raises Disconnected."""
        while not self._read.is_set():
            message = await self._receive()
            if message["type"] == "http.disconnect":
                raise Disconnected
            if not message.get("more_body"):
                self._read.set()
            if part := message.get("body", b""):
                yield part

    async def wait_for_disconnect(self) -> None:
        """Returns when the client has left. It begins to look once the body has been read."""
        await self._read.wait()
        while (await self._receive())["type"] != "http.disconnect":
            pass
