"""exec, attach and port-forward over SPDY alone, as kubectl up to 1.30 does it.

These connections have the interface of a `WebSocket` whose messages begin with a channel's number,
so sessions work with both.

Source: staging/src/k8s.io/kubelet/pkg/cri/streaming/remotecommand/httpstream.go,
staging/src/k8s.io/apimachinery/pkg/util/httpstream/spdy, Kubernetes 1.33.
"""

from __future__ import annotations

import asyncio
from collections import deque
from contextlib import suppress

from starlette.types import Scope

from kcm.http.upgrades import Taken
from kcm.kubelet.cri import StreamOptions
from kcm.kubelet.server import spdy
from kcm.kubelet.server.channels import CLOSE, ERROR, RESIZE, STDERR, STDIN, STDOUT
from kcm.kubelet.server.websocket import header

PROTOCOL = "SPDY/3.1"
VERSIONS = b"x-stream-protocol-version"
_READ = 64 * 1024  # bytes
_MOST_EARLY = 1024 * 1024  # bytes of input before all streams are open
_OVERHEAD = 64  # bytes that a message takes besides its data
FRAMES = 256  # frames that are handled before other tasks get a turn
_OPENING = 30.0  # seconds for a client to open the streams that it has requested
_PATIENCE = 2.0  # seconds for it to close the connection at the end
_CHANNELS = {
    "stdin": STDIN,
    "stdout": STDOUT,
    "stderr": STDERR,
    "error": ERROR,
    "resize": RESIZE,
}


def is_asked(scope: Scope) -> bool:
    """Reports whether a request is for an upgrade to SPDY."""
    return header(scope, b"upgrade").lower() == PROTOCOL.lower()


def build_acceptance(version: str) -> bytes:
    """Returns the head of the response that accepts the upgrade."""
    return (
        f"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: {PROTOCOL}\r\n"
        f"X-Stream-Protocol-Version: {version}\r\n\r\n"
    ).encode("latin-1")


class RawConnection:
    """A connection without messages of its own: each message is the bytes of one read."""

    def __init__(self, taken: Taken) -> None:
        self._reader, self._writer = taken

    async def send(self, data: bytes) -> None:
        """Sends bytes. Raises OSError."""
        self._writer.write(data)
        await self._writer.drain()

    async def receive(self) -> bytes | None:
        try:
            await asyncio.sleep(0)  # a reader that has data gives other tasks no turn
            return await self._reader.read(_READ) or None
        except OSError:
            return None

    async def close(self) -> None:
        self._writer.close()


class SpdyChannels:
    """One exec or attach over SPDY. Each message begins with the number of its channel."""

    def __init__(self, taken: Taken, wanted: StreamOptions) -> None:
        self._bytes = RawConnection(taken)
        self._session = spdy.SpdySession()
        self._streams: dict[int, int] = {}  # by channel
        self._messages: deque[bytes] = deque()
        self._come = 0  # bytes that all input has taken
        self._closing = False  # input is dropped
        self._expected = {ERROR}
        self._expected |= {STDIN} if wanted.stdin else set()
        self._expected |= {STDOUT} if wanted.stdout else set()
        self._expected |= {STDERR} if wanted.stderr else set()
        self._expected |= {RESIZE} if wanted.tty else set()

    async def ready(self) -> bool:
        """Waits until the client has opened its streams. Returns False if it has not."""
        with suppress(OSError, TimeoutError, spdy.SpdyError):
            async with asyncio.timeout(_OPENING):
                while not self._expected <= self._streams.keys():
                    if not await self._read() or self._come > _MOST_EARLY:
                        return False
            return True
        return False

    async def send(self, message: bytes) -> None:
        """Sends a message to the stream of its channel, if that is open. Raises OSError."""
        stream = self._streams.get(message[0])
        if stream is not None and len(message) > 1:
            await self._bytes.send(self._session.data(stream, message[1:]))

    async def receive(self) -> bytes | None:
        """Returns the next message, or None once the client has left."""
        with suppress(OSError, spdy.SpdyError):
            while not self._messages:
                if not await self._read():
                    return None
            return self._messages.popleft()
        return None

    async def _read(self) -> bool:
        data = await self._bytes.receive()
        if data is None:
            return False
        for number, event in enumerate(self._session.receive(data), 1):
            await self._handle(event)
            if number % FRAMES == 0:
                await asyncio.sleep(0)
        return True

    async def _handle(self, event: spdy.Event) -> None:
        match event:
            case spdy.StreamOpened():
                await self._handle_opened(event)
            case spdy.SpdyPing():
                await self._bytes.send(self._session.pong(event.number))
            case spdy.Data():
                self._handle_data(event)

    async def _handle_opened(self, event: spdy.StreamOpened) -> None:
        channel = _CHANNELS.get(event.headers.get("streamtype", ""))
        if channel is None or channel in self._streams:
            await self._bytes.send(self._session.reset(event.stream, spdy.REFUSED_STREAM))
            return
        self._streams[channel] = event.stream
        await self._bytes.send(self._session.reply(event.stream))

    def _handle_data(self, event: spdy.Data) -> None:
        if self._closing:
            return
        channel = next((c for c, stream in self._streams.items() if stream == event.stream), None)
        if channel is None:
            return
        self._come += len(event.data) + _OVERHEAD
        if event.data:
            self._messages.append(bytes([channel]) + event.data)
        if event.ended and channel == STDIN:
            self._messages.append(bytes([CLOSE, STDIN]))

    async def close(self) -> None:
        """Closes all streams, and waits up to _PATIENCE seconds for the client to leave."""
        self._closing = True
        try:
            with suppress(OSError, TimeoutError, spdy.SpdyError):
                async with asyncio.timeout(_PATIENCE):
                    for channel in (STDOUT, STDERR, ERROR):
                        if channel in self._streams:
                            end = self._session.data(self._streams[channel], b"", end=True)
                            await self._bytes.send(end)
                    while await self._read():
                        pass
        finally:
            await self._bytes.close()
