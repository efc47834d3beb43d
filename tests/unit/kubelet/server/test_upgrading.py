"""Which upgrades are accepted."""

from __future__ import annotations

from typing import Any

import pytest

from kcm import errors
from kcm.kubelet.server.upgrading import accept_tunnel, has_port_channels
from kcm.kubelet.server.websocket import build_handshake

KEY = (b"sec-websocket-key", b"dGhlIHNhbXBsZSBub25jZQ==")
SOCKET = [(b"upgrade", b"websocket"), (b"sec-websocket-version", b"13"), KEY]
SPDY = [(b"upgrade", b"SPDY/3.1")]


def scope(*headers: tuple[bytes, bytes]) -> dict[str, Any]:
    return {"type": "http", "headers": list(headers)}


@pytest.mark.parametrize(
    ("headers", "words"),
    [
        ([], "Upgrade request required"),
        ([(b"upgrade", b"h2c")], "Upgrade request required"),
        ([(b"upgrade", b"websocket"), KEY], "websocket version 13 and a key are required"),
        (SOCKET, "none of the protocols"),
        ([*SOCKET, (b"sec-websocket-protocol", b"chat, v5.channel.k8s.io")], "'v5.channel.k8s.io'"),
        (SPDY, "none of the protocols"),
        ([*SPDY, (b"x-stream-protocol-version", b"v9")], "'v9'"),
        # All is right, but for the server, which does not offer to hand over its connection.
        ([*SPDY, (b"x-stream-protocol-version", b"portforward.k8s.io")], "Upgrade request"),
    ],
)
def test_what_is_no_upgrade_to_something_known_is_refused(
    headers: list[tuple[bytes, bytes]], words: str
) -> None:
    with pytest.raises(errors.BadRequest, match=words):
        accept_tunnel(scope(*headers))


def test_a_handshake_is_answered_as_the_rfc_has_it() -> None:
    head = build_handshake(scope(*SOCKET), "v5.channel.k8s.io")
    assert b"Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n" in head
    assert head.endswith(b"Sec-WebSocket-Protocol: v5.channel.k8s.io\r\n\r\n")


def test_a_websocket_has_channels_of_its_own_if_it_offers_them() -> None:
    offer = (b"sec-websocket-protocol", b"v4.channel.k8s.io")
    assert has_port_channels(scope(*SOCKET, offer))
    assert not has_port_channels(scope(*SOCKET))
    assert not has_port_channels(scope(*SPDY, offer))
