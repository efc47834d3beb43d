"""Answering upgrades: to WebSocket, or to SPDY for older clients."""

from __future__ import annotations

from collections.abc import Sequence

from starlette.types import Scope

from kcm import errors
from kcm.http.upgrades import Taken, upgrade_of
from kcm.kubelet.server import (
    channels,
    portchannels,
    portforward,
    spdychannels,
    websocket,
)
from kcm.kubelet.server.channels import Wanted
from kcm.kubelet.server.messages import Messages

_FORWARD = ("portforward.k8s.io",)
_EXEC = ("v4.channel.k8s.io",)


async def channels_of(scope: Scope, wanted: Wanted) -> Messages | None:
    """The connection of an exec or attach; None when the client did not go through with it.

    Raises BadRequest.
    """
    if not spdychannels.is_asked(scope):
        return websocket.WebSocket(_accept_websocket(scope, channels.SUBPROTOCOLS))
    found = spdychannels.SpdyChannels(_accept_spdy(scope, _EXEC), wanted)
    if await found.ready():
        return found
    await found.close()
    return None


def has_port_channels(scope: Scope) -> bool:
    """Whether a port-forward asks for channels of its WebSocket, not for SPDY inside of it."""
    return not spdychannels.is_asked(scope) and (
        portchannels.SUBPROTOCOL in websocket.offered(scope)
    )


def tunnel_of(scope: Scope) -> Messages:
    """The connection of a port-forward. Raises BadRequest."""
    if has_port_channels(scope):
        return websocket.WebSocket(_accept_websocket(scope, (portchannels.SUBPROTOCOL,)))
    if spdychannels.is_asked(scope):
        return spdychannels.Bytes(_accept_spdy(scope, _FORWARD))
    return websocket.WebSocket(_accept_websocket(scope, portforward.SUBPROTOCOLS))


def _accept_websocket(scope: Scope, known: Sequence[str]) -> Taken:
    if wrong := websocket.fault(scope):
        raise errors.BadRequest(wrong)
    chosen = _chosen(websocket.offered(scope), known)
    return _accepted(scope, websocket.handshake(scope, chosen))


def _accept_spdy(scope: Scope, known: Sequence[str]) -> Taken:
    chosen = _chosen(spdychannels.offered(scope), known)
    return _accepted(scope, spdychannels.acceptance(chosen))


def _chosen(offered: Sequence[str], known: Sequence[str]) -> str:
    """The first that is known. Raises BadRequest."""
    found = next((name for name in offered if name in known), "")
    if not found:
        raise errors.BadRequest(f"none of the protocols {list(offered)} is known: {list(known)}")
    return found


def _accepted(scope: Scope, head: bytes) -> Taken:
    take_over = upgrade_of(scope)
    if take_over is None:
        raise errors.BadRequest("Upgrade request required")
    reader, writer = take_over()
    writer.write(head)
    return reader, writer
