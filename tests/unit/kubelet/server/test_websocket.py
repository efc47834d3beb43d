"""WebSocket messages of clients that break the protocol."""

from __future__ import annotations

import asyncio
from typing import cast

import pytest
from wsproto.connection import Connection, ConnectionType
from wsproto.events import BytesMessage

from kcm.kubelet.server.websocket import WebSocket


class Writer:
    """Discards what is written."""

    def write(self, data: bytes) -> None: ...

    async def drain(self) -> None: ...

    def close(self) -> None: ...


def receive(pieces: int, size: int) -> bytes | None:
    """Returns what is received of a message with that many fragments of that size."""

    async def run() -> bytes | None:
        client = Connection(ConnectionType.CLIENT)
        reader = asyncio.StreamReader()
        for number in range(1, pieces + 1):
            event = BytesMessage(b"x" * size, message_finished=number == pieces)
            reader.feed_data(client.send(event))
        reader.feed_eof()
        writer = cast("asyncio.StreamWriter", Writer())  # what is asked of it
        return await WebSocket((reader, writer)).receive()

    return asyncio.run(run())


@pytest.mark.parametrize(
    ("pieces", "size", "whole"),
    [(1, 10, True), (4096, 100, True), (4097, 1, False), (100_000, 1, False), (5, 1 << 20, False)],
)
def test_a_message_has_no_more_fragments_and_bytes_than_it_may(
    pieces: int, size: int, whole: bool
) -> None:
    assert receive(pieces, size) == (b"x" * pieces * size if whole else None)
