"""Answers over WebSocket: logs and watches, whose pieces are messages.

Source: staging/src/k8s.io/streaming/pkg/httpstream/wsstream (NewDefaultReaderProtocols) and
WatchServer.HandleWS in staging/src/k8s.io/apiserver/pkg/endpoints/handlers/watch.go, Kubernetes
1.36. Departure: a client needs no header Origin.
"""

from __future__ import annotations

import asyncio
from base64 import b64encode
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import Any

from starlette.types import Receive, Scope, Send

from kcm import errors
from kcm.http.upgrades import upgrade_of
from kcm.kubelet.server.websocket import (
    WebSocket,
    build_handshake,
    find_fault,
    header,
    list_offered,
)

Framing = Callable[[], Callable[[bytes], Iterable[bytes | str]]]
"""Returns a function of one answer, which returns the messages for the next piece of its body."""


def frame_lines() -> Callable[[bytes], Iterable[str]]:
    """Returns the framing of a watch: a text message for each line."""
    rest = b""

    def frame(piece: bytes) -> Iterable[str]:
        nonlocal rest
        *lines, rest = (rest + piece).split(b"\n")
        return [line.decode() + "\n" for line in lines]

    return frame


LOG_PROTOCOLS: Mapping[str, Framing] = {
    "": lambda: lambda piece: [piece],
    "binary.k8s.io": lambda: lambda piece: [piece],
    "base64.binary.k8s.io": lambda: lambda piece: [b64encode(piece).decode()],
}
WATCH_PROTOCOLS: Mapping[str, Framing] = {"": frame_lines}


def find_channels(
    scope: Scope, receive: Receive, send: Send, protocols: Mapping[str, Framing]
) -> tuple[Receive, Send]:
    """Returns the functions by which an answer is sent: those of the request, or, if it asks for a
    WebSocket, those of the connection. `protocols` are the framings by subprotocol; "" is for a
    client that offers none.

    Raises BadRequest for a handshake that is wrong, or none of whose subprotocols is there.
    """
    if header(scope, b"upgrade").lower() != "websocket":
        return receive, send
    if fault := find_fault(scope):
        raise errors.BadRequest(fault)
    offered = list_offered(scope)
    chosen = next((name for name in offered if name in protocols), "")
    if chosen not in protocols or (offered and not chosen):
        names = [name for name in protocols if name]
        raise errors.BadRequest(f"none of the protocols {offered} is known: {names}")
    answer = _WebSocketAnswer(scope, chosen, protocols[chosen]())
    return answer.receive, answer.send


class _WebSocketAnswer:
    """The two ASGI functions of an answer over WebSocket."""

    def __init__(
        self, scope: Scope, protocol: str, frame: Callable[[bytes], Iterable[bytes | str]]
    ) -> None:
        self._scope = scope
        self._protocol = protocol
        self._frame = frame
        self._socket: WebSocket | None = None
        self._accepted = asyncio.Event()

    async def receive(self) -> Any:
        """Returns once the client has left. What it sends is dropped."""
        await self._accepted.wait()
        while self._socket is not None and await self._socket.receive() is not None:
            pass
        return {"type": "http.disconnect"}

    async def send(self, message: Any) -> None:
        """Accepts the handshake with the head of the answer, and closes with its end. What the
        client no longer takes is dropped.
        """
        if self._socket is None:  # the head comes first
            self._socket = self._accept()
            self._accepted.set()
            return
        with suppress(OSError):
            for framed in self._frame(bytes(message.get("body", b""))):
                if framed:
                    await self._socket.send(framed)
        if not message.get("more_body"):
            await self._socket.close()

    def _accept(self) -> WebSocket:
        take_over = upgrade_of(self._scope)
        if take_over is None:
            raise errors.BadRequest("Upgrade request required")
        reader, writer = take_over()
        writer.write(build_handshake(self._scope, self._protocol))
        return WebSocket((reader, writer))
