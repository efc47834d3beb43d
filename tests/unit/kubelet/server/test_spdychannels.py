"""exec over SPDY of clients that break the protocol."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator
from typing import cast

from kcm.kubelet.cri import StreamOptions
from kcm.kubelet.server.spdy import SpdySession
from kcm.kubelet.server.spdychannels import SpdyChannels
from tests.unit.kubelet.server.test_spdy import Client

PIECE = b"x" * 65536


class Connection:
    """Returns prepared bytes, and discards what is written."""

    def __init__(self, pieces: Iterable[bytes]) -> None:
        self._pieces = iter(pieces)
        self.read_pieces = 0

    async def read(self, most: int) -> bytes:
        piece = next(self._pieces, b"")
        self.read_pieces += bool(piece)
        return piece

    def write(self, data: bytes) -> None: ...

    async def drain(self) -> None: ...

    def close(self) -> None: ...


def open_channels(pieces: Iterable[bytes]) -> tuple[SpdyChannels, Connection]:
    connection = Connection(pieces)
    reader = cast("asyncio.StreamReader", connection)  # what is asked of it
    writer = cast("asyncio.StreamWriter", connection)
    return SpdyChannels((reader, writer), StreamOptions(stdin=True)), connection


def send_input(frames: int, *kinds: str) -> Iterator[bytes]:
    client = Client()
    for number, kind in enumerate(kinds):
        yield client.open_frame(2 * number + 1, {"streamtype": kind})
    yield from [SpdySession().data(1, PIECE)] * frames


def test_input_that_comes_before_all_streams_are_open_is_kept_up_to_a_bound() -> None:
    channels, connection = open_channels(send_input(100, "stdin"))
    assert not asyncio.run(channels.ready())
    assert connection.read_pieces < 20


def test_input_that_comes_while_the_connection_closes_is_dropped() -> None:
    channels, connection = open_channels(send_input(100, "stdin", "error"))

    async def run() -> bytes | None:
        assert await channels.ready()
        await channels.close()
        return await channels.receive()

    assert asyncio.run(run()) is None
    assert connection.read_pieces == 102
