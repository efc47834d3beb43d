"""Port-forwarding sessions of clients that break the protocol."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor

from kcm.errors import ContainerRuntimeError
from kcm.kubelet.server.portforward import PortForwarding
from kcm.kubelet.server.spdy import SpdySession
from kcm.testing.waiting import yield_to_loop
from tests.unit.kubelet.server.test_spdy import Client

PIECE = b"x" * 65536


class Channel:
    """Returns prepared messages, and keeps those that are sent."""

    def __init__(self, messages: Iterable[bytes]) -> None:
        self._messages = iter(messages)
        self.sent: list[bytes] = []

    async def send(self, data: bytes) -> None:
        self.sent.append(data)

    async def receive(self) -> bytes | None:
        return next(self._messages, None)

    async def close(self) -> None: ...


def refuse(port: int) -> int:
    raise ContainerRuntimeError("nobody listens")


def serve(messages: Iterable[bytes]) -> tuple[Channel, int]:
    """Returns the channel after the session, and how many turns other tasks got meanwhile."""
    channel = Channel(messages)

    async def run() -> int:
        turns = 0

        async def others() -> None:
            nonlocal turns
            while True:
                turns += 1
                await yield_to_loop()

        beside = asyncio.ensure_future(others())
        with ThreadPoolExecutor(1) as pool:
            await PortForwarding(channel, refuse, pool).run()
        beside.cancel()
        return turns

    return channel, asyncio.run(run())


def test_data_for_a_stream_without_its_partner_is_kept_up_to_a_bound() -> None:
    client, frames = Client(), SpdySession()
    opening = client.open_frame(1, {"streamtype": "data", "port": "80", "requestid": "0"})
    data = frames.data(1, PIECE)
    channel, _ = serve([opening, *[data] * 100])
    assert [int.from_bytes(sent[2:4], "big") for sent in channel.sent] == [2, 3]  # reply, reset


def test_many_small_frames_let_others_in() -> None:
    frame = SpdySession().data(7, b"x")
    _, turns = serve([frame * 100_000])
    assert turns > 300
