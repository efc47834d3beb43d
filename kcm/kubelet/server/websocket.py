"""WebSocket over a connection that was taken over from the HTTP server: the server's side.

Guarantees: `receive` returns whole messages, pings are answered, and one message at a time is sent.

Source: RFC 6455; staging/src/k8s.io/apimachinery/pkg/util/httpstream/wsstream, Kubernetes 1.33.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
from contextlib import suppress

from starlette.types import Scope
from wsproto.connection import Connection, ConnectionState, ConnectionType
from wsproto.events import BytesMessage, CloseConnection, Message, Ping, TextMessage
from wsproto.utilities import RemoteProtocolError

from kcm.http.upgrades import Taken

PROTOCOLS = b"sec-websocket-protocol"
_GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
_MOST = 4 * 1024 * 1024  # bytes of a message
_MOST_FRAGMENTS = 4096  # of a message
_READ = 16 * 1024  # bytes that are read before other tasks get a turn
_PATIENCE = 2.0  # seconds for the client to close the connection


def header(scope: Scope, name: bytes) -> str:
    """Returns the value of a request's header, '' if it has none."""
    return next((value.decode("latin-1") for key, value in scope["headers"] if key == name), "")


def list_offered(scope: Scope, name: bytes = PROTOCOLS) -> list[str]:
    """Returns the subprotocols that the client offers in a header, the preferred one first."""
    lines = [value.decode("latin-1") for key, value in scope["headers"] if key == name]
    return [part.strip() for line in lines for part in line.split(",") if part.strip()]


def find_fault(scope: Scope) -> str:
    """Returns why a request is not a WebSocket handshake, or '' if it is one."""
    if header(scope, b"upgrade").lower() != "websocket":
        return "Upgrade request required"
    if header(scope, b"sec-websocket-version") != "13" or not header(scope, b"sec-websocket-key"):
        return "websocket version 13 and a key are required"
    return ""


def build_handshake(scope: Scope, subprotocol: str) -> bytes:
    """Returns the head of the response that accepts the handshake; a subprotocol "" is none."""
    key = header(scope, b"sec-websocket-key").encode("latin-1")
    accept = base64.b64encode(hashlib.sha1(key + _GUID).digest())
    chosen = b"Sec-WebSocket-Protocol: " + subprotocol.encode("latin-1") + b"\r\n"
    return (
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        b"Sec-WebSocket-Accept: " + accept + b"\r\n" + (chosen if subprotocol else b"") + b"\r\n"
    )


class WebSocket:
    """Sends and receives messages on an open connection."""

    def __init__(self, taken: Taken) -> None:
        self._reader, self._writer = taken
        self._frames = Connection(ConnectionType.SERVER)
        self._lock = asyncio.Lock()

    async def send(self, data: bytes | str) -> None:
        """Sends a message, binary or text. Waits while the client does not read. Raises OSError."""
        async with self._lock:
            if self._frames.state is not ConnectionState.OPEN:
                raise ConnectionResetError("the connection is closed")
            message = TextMessage(data) if isinstance(data, str) else BytesMessage(data)
            self._writer.write(self._frames.send(message))
            await self._writer.drain()

    async def receive(self) -> bytes | None:
        """Returns the next message, or None once the client has left."""
        message, fragments = bytearray(), 0
        while True:
            for event in self._frames.events():
                if isinstance(event, CloseConnection):
                    await self._answer(event)
                    return None
                if isinstance(event, Ping):
                    await self._answer(event)
                elif isinstance(event, Message):
                    piece = event.data
                    message += piece.encode() if isinstance(piece, str) else piece
                    fragments += event.frame_finished
                    if len(message) > _MOST or fragments > _MOST_FRAGMENTS:
                        await self.close(1009, "message too big")
                        return None
                    if event.message_finished:
                        return bytes(message)
            if not await self._read():
                return None

    async def _read(self) -> bool:
        try:
            await asyncio.sleep(0)  # a reader that has data gives other tasks no turn
            data = await self._reader.read(_READ)
            if data:
                self._frames.receive_data(data)
        except (OSError, RemoteProtocolError):
            return False
        return bool(data)

    async def _answer(self, event: CloseConnection | Ping) -> None:
        with suppress(OSError):
            async with self._lock:
                if self._frames.state in (ConnectionState.OPEN, ConnectionState.REMOTE_CLOSING):
                    self._writer.write(self._frames.send(event.response()))
                    await self._writer.drain()

    def _drop_until_close(self) -> bool:
        """Drops the client's messages; returns whether it has closed the connection."""
        return any(isinstance(event, CloseConnection) for event in list(self._frames.events()))

    async def close(self, code: int = 1000, reason: str = "") -> None:
        """Closes the connection; waits up to _PATIENCE seconds for the client to close it too."""
        try:
            with suppress(OSError, TimeoutError):
                async with asyncio.timeout(_PATIENCE):
                    if self._frames.state is ConnectionState.OPEN:
                        async with self._lock:
                            self._writer.write(self._frames.send(CloseConnection(code, reason)))
                            await self._writer.drain()
                        while await self._read() and not self._drop_until_close():
                            pass
        finally:
            self._writer.close()
