"""What every new connection comes through: the limit of its address, then TLS, then HTTP.

uvicorn's server gets plain TCP connections. A connection beyond the limit is closed before it costs
anything.
"""

from __future__ import annotations

import asyncio
import ssl
from typing import Any

from kcm.apiserver.http.connection import LimitedConnection
from kcm.apiserver.http.tls import TLSConnection
from kcm.apiserver.http.unauthenticated import UnauthenticatedConnections


class Entrance:
    """Makes the protocols of new connections."""

    def __init__(
        self, connections: UnauthenticatedConnections, handshake_timeout: float | None
    ) -> None:
        """`handshake_timeout` is in seconds, None is asyncio's minute."""
        self.connections = connections
        self.handshake_timeout = handshake_timeout
        self.tls: ssl.SSLContext | None = None  # without it, connections are plain HTTP

    def open(self, **given: Any) -> asyncio.Protocol:
        """Returns the protocol of a connection that was accepted. `given` is uvicorn's."""
        return _Accepted(self, given)


class _Accepted(asyncio.Protocol):
    """A connection whose address is not known yet."""

    def __init__(self, entrance: Entrance, given: dict[str, Any]) -> None:
        self._entrance = entrance
        self._given = given

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override] # asyncio passes a Transport
        entrance = self._entrance
        address = str((transport.get_extra_info("peername") or ("",))[0])
        newcomer = entrance.connections.admit(address)
        if newcomer is None:
            transport.abort()
            return

        def open_inner() -> LimitedConnection:
            return LimitedConnection(newcomer, **self._given)

        def fail() -> None:
            newcomer.let_go()
            entrance.connections.count_failed_handshake()

        protocol: asyncio.BaseProtocol
        if entrance.tls is None:
            protocol = open_inner()
        else:
            timeout = entrance.handshake_timeout
            protocol = TLSConnection(open_inner, entrance.tls, timeout, failed=fail)
        transport.set_protocol(protocol)
        protocol.connection_made(transport)
