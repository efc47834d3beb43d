"""Port-forwarding sessions of clients that break the protocol or leave."""

from __future__ import annotations

import asyncio
import gc
import socket
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, nullcontext
from functools import partial

import pytest

from kcm.errors import ContainerRuntimeError
from kcm.kubelet.cri import PortConnection
from kcm.kubelet.server import portforward
from kcm.kubelet.server.portforward import PortChannels, PortForwarding
from kcm.kubelet.server.spdy import SpdySession
from kcm.kubelet.server.stream_limits import MOST_FORWARDED_OF_POD, ForwardLimits
from kcm.testing.waiting import yield_to_loop
from tests.unit.kubelet.server.test_spdy import Client

PIECE = b"x" * 65536


class Channel:
    """Returns prepared messages, and keeps those that are sent."""

    def __init__(self, messages: Iterable[bytes], ended: asyncio.Event | None = None) -> None:
        """The client stays until `ended` is set, which an end of a stream does."""
        self._messages = iter(messages)
        self._ended = ended
        self.sent: list[bytes] = []
        self.closed = False

    async def send(self, data: bytes) -> None:
        self.sent.append(data)
        if self._ended is not None and len(self.sent) == 4:  # two replies, and two ends
            self._ended.set()

    async def receive(self) -> bytes | None:
        message = next(self._messages, None)
        if message is None and self._ended is not None:
            await self._ended.wait()
        return message

    async def close(self) -> None:
        self.closed = True


def refuse(port: int) -> PortConnection:
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
            await PortForwarding(channel, refuse, pool, admit=nullcontext).run()
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


def list_kinds(sent: Iterable[bytes]) -> list[int]:
    """Returns the types of the control frames."""
    return [int.from_bytes(frame[2:4], "big") for frame in sent]


REPLY, RESET = 2, 3


@pytest.mark.parametrize(
    "wrong",
    [
        {"streamtype": "data", "port": "80", "requestid": "x" * 65},
        {"streamtype": "data", "port": "80", "requestid": "0"},  # it has its data stream
        {"streamtype": "data", "port": "9" * 5000},
        {"streamtype": "data", "port": "65536"},
        {"streamtype": "data", "port": "-1"},
        {"streamtype": "shout", "port": "80"},
    ],
)
def test_a_stream_that_belongs_to_no_connection_is_refused(wrong: dict[str, str]) -> None:
    client = Client()
    right = client.open_frame(1, {"streamtype": "data", "port": "80", "requestid": "0"})
    channel, _ = serve([right, client.open_frame(3, wrong)])
    assert list_kinds(channel.sent) == [REPLY, RESET]


def test_a_stream_that_is_reset_makes_room_for_another() -> None:
    client, frames = Client(), SpdySession()
    messages = []
    for number in range(1, 4001, 2):
        asked = {"streamtype": "error", "port": "80", "requestid": str(number)}
        messages.append(client.open_frame(number, asked) + frames.reset(number))
    channel, _ = serve(messages)
    assert set(list_kinds(channel.sent)) == {REPLY}


class LastingChannel(Channel):
    """Its client stays until that many frames were sent, and counts what is kept then."""

    def __init__(self, messages: Iterable[bytes], frames: int) -> None:
        super().__init__(messages)
        self._frames = frames
        self.kept = -1

    async def receive(self) -> bytes | None:
        message = await super().receive()
        while message is None and len(self.sent) < self._frames:
            await yield_to_loop()
        if message is None:
            gc.collect()
            self.kept = sum(isinstance(one, portforward._Forward) for one in gc.get_objects())
        return message


def test_a_connection_that_is_over_is_not_kept_by_its_session() -> None:
    client = Client()
    kinds = {1: "error", 3: "data"}
    channel = LastingChannel(
        [
            client.open_frame(
                stream,
                {"streamtype": kinds[stream % 4], "port": "80", "requestid": str(stream // 4)},
            )
            for stream in range(1, 400, 2)
        ],
        frames=2 * 200,  # a reply and an end for each stream
    )

    async def run() -> None:
        with ThreadPoolExecutor(1) as pool:
            await PortForwarding(channel, refuse, pool, admit=nullcontext).run()

    asyncio.run(run())
    assert channel.kept == 0


def test_more_connections_than_a_pod_may_have_are_told_on_their_error_streams() -> None:
    forwarded, client = ForwardLimits(), Client()
    asked = {"port": "80", "requestid": "0"}
    with ExitStack() as held:
        for _ in range(MOST_FORWARDED_OF_POD):
            held.enter_context(forwarded.acquire("shop", "pod"))

        async def run() -> Channel:
            ended = asyncio.Event()
            channel = Channel(
                [
                    client.open_frame(1, asked | {"streamtype": "error"}),
                    client.open_frame(3, asked | {"streamtype": "data"}),
                ],
                ended,
            )
            with ThreadPoolExecutor(1) as pool:
                admit = partial(forwarded.acquire, "shop", "pod")
                await PortForwarding(channel, refuse, pool, admit=admit).run()
            return channel

        fault = asyncio.run(run()).sent[-1]
    assert fault[8:].decode() == (
        "error forwarding port 80: pod shop/pod has 128 forwarded connections open, which is as "
        "many as it may: close some"
    )


def end_at_once(port: int) -> PortConnection:
    """Returns a connection that the runtime has ended, since nothing listens on the port."""
    ours, theirs = socket.socketpair()
    theirs.close()
    return PortConnection(ours.detach(), lambda: "connection refused")


@pytest.mark.parametrize("early", [b"", b"GET / HTTP/1.1\r\n"])
def test_why_the_runtime_has_ended_a_connection_is_told(early: bytes) -> None:
    client = Client()
    asked = {"port": "80", "requestid": "0"}

    async def run() -> Channel:
        channel = Channel(
            [
                client.open_frame(1, asked | {"streamtype": "error"}),
                client.open_frame(3, asked | {"streamtype": "data"}),
                *([SpdySession().data(3, early)] if early else []),
            ],
            asyncio.Event(),
        )
        with ThreadPoolExecutor(1) as pool:
            await PortForwarding(channel, end_at_once, pool, admit=nullcontext).run()
        return channel

    sent = asyncio.run(run()).sent
    assert sent[-1][8:] == b"error forwarding port 80: connection refused"


def test_a_client_that_leaves_while_its_port_is_opened_ends_the_session() -> None:
    async def run() -> Channel:
        channel = Channel([])
        with ThreadPoolExecutor(1) as pool:
            await PortChannels(channel, [80], end_at_once, pool, admit=nullcontext).run()
        return channel

    assert asyncio.run(run()).closed
