"""Accepts upgrades of requests to WebSocket, or to SPDY for older clients."""

from __future__ import annotations

from collections.abc import Sequence

from starlette.types import Scope

from kcm import errors
from kcm.http.upgrades import Taken, upgrade_of
from kcm.kubelet.cri import StreamOptions
from kcm.kubelet.server import (
    channels,
    portforward,
    spdychannels,
    websocket,
)
from kcm.kubelet.server.messages import MessageConnection

_FORWARD = ("portforward.k8s.io",)
_EXEC = ("v4.channel.k8s.io",)


async def accept_channels(scope: Scope, wanted: StreamOptions) -> MessageConnection | None:
    """Returns the connection of an exec or attach, or None if the client left.

    Raises BadRequest.
    """
    if not spdychannels.is_asked(scope):
        socket = websocket.WebSocket(_accept_websocket(scope, channels.SUBPROTOCOLS))
        chosen = _choose(websocket.list_offered(scope), channels.SUBPROTOCOLS)
        return channels.FirstVersion(socket) if chosen == channels.FIRST_VERSION else socket
    connection = spdychannels.SpdyChannels(_accept_spdy(scope, _EXEC), wanted)
    if await connection.ready():
        return connection
    await connection.close()
    return None


def has_port_channels(scope: Scope) -> bool:
    """Reports whether a port-forward uses channels of its WebSocket instead of SPDY inside it."""
    return not spdychannels.is_asked(scope) and (
        portforward.SUBPROTOCOL in websocket.list_offered(scope)
    )


def accept_tunnel(scope: Scope) -> MessageConnection:
    """Returns the connection of a port-forward. Raises BadRequest."""
    if has_port_channels(scope):
        return websocket.WebSocket(_accept_websocket(scope, (portforward.SUBPROTOCOL,)))
    if spdychannels.is_asked(scope):
        return spdychannels.RawConnection(_accept_spdy(scope, _FORWARD))
    return websocket.WebSocket(_accept_websocket(scope, portforward.SUBPROTOCOLS))


def _accept_websocket(scope: Scope, protocols: Sequence[str]) -> Taken:
    if wrong := websocket.find_fault(scope):
        raise errors.BadRequest(wrong)
    chosen = _choose(websocket.list_offered(scope), protocols)
    return _accept(scope, websocket.build_handshake(scope, chosen))


def _accept_spdy(scope: Scope, protocols: Sequence[str]) -> Taken:
    chosen = _choose(websocket.list_offered(scope, spdychannels.VERSIONS), protocols)
    return _accept(scope, spdychannels.build_acceptance(chosen))


def _choose(offered: Sequence[str], protocols: Sequence[str]) -> str:
    """Returns the first offered subprotocol that is known. Raises BadRequest."""
    chosen = next((name for name in offered if name in protocols), "")
    if not chosen:
        raise errors.BadRequest(
            f"none of the protocols {list(offered)} is known: {list(protocols)}"
        )
    return chosen


def _accept(scope: Scope, head: bytes) -> Taken:
    take_over = upgrade_of(scope)
    if take_over is None:
        raise errors.BadRequest("Upgrade request required")
    reader, writer = take_over()
    writer.write(head)
    return reader, writer
