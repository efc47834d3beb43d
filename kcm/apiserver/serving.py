"""The HTTP server around the app: port, TLS, start, graceful stop."""

from __future__ import annotations

import asyncio
import socket
import ssl
from asyncio.sslproto import SSLProtocol
from dataclasses import dataclass
from pathlib import Path

import structlog
import uvicorn

from kcm.apiserver.app import ApiServer
from kcm.apiserver.credentials import Certificate
from kcm.apiserver.http.connection import Connection
from kcm.http import listening
from kcm.interpreter import tune

log = structlog.get_logger("kcm.apiserver")

_LOOPBACK = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # for listening everywhere
GRACE = 5  # seconds for requests under way when the server stops
LINGER = 0.5  # seconds for idle clients to take note of the end; most do not read until they ask
KEEP_ALIVE = 75  # seconds that an idle connection stays open


@dataclass(frozen=True)
class Address:
    """Where to listen; port 0 takes any that is free."""

    host: str = "127.0.0.1"
    port: int = 8001


def bind(address: Address) -> socket.socket:
    """A listening socket. Raises ConfigurationError, naming port and flag."""
    return listening.listen(address.host, address.port, "--port")


def url_of(listener: socket.socket, certificate: Certificate | None) -> str:
    """Where clients on this machine reach the server."""
    host, port = listener.getsockname()[:2]
    host = _LOOPBACK.get(host, host)
    shown = f"[{host}]" if ":" in host else host
    return f"{'https' if certificate else 'http'}://{shown}:{port}"


# asyncio keeps a buffer of 256 KiB per TLS connection, most of an idle watcher's memory.
# Clients send little: what is larger than this comes in several reads.
SSLProtocol.max_size = 16 * 1024


class Server(listening.Server):
    """Ending the app's streams before it waits for connections."""

    def __init__(
        self, app: ApiServer, certificate: Certificate | None, authorities: Path | None = None
    ) -> None:
        """`authorities`: whose client certificates tell who a client is."""
        self._app = app
        super().__init__(
            uvicorn.Config(
                app,
                lifespan="off",
                log_config=None,
                log_level="warning",
                access_log=False,
                server_header=False,
                date_header=False,
                proxy_headers=False,  # whoever connects is the client
                http=Connection,
                ws="none",
                timeout_keep_alive=KEEP_ALIVE,
                timeout_graceful_shutdown=GRACE,
                ssl_certfile=certificate.certificate if certificate else None,
                ssl_keyfile=certificate.key if certificate else None,
                # A certificate of another authority ends the handshake.
                ssl_ca_certs=str(authorities) if authorities else None,
                ssl_cert_reqs=ssl.CERT_OPTIONAL if authorities else ssl.CERT_NONE,
            )
        )

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """End the streams, then as uvicorn does."""
        self._app.end_watches()
        asyncio.get_running_loop().call_later(LINGER, self._drop_idle)
        await super().shutdown(sockets)

    def _drop_idle(self) -> None:
        for connection in list(self.server_state.connections):
            if isinstance(connection, Connection) and connection.idle:
                connection.transport.abort()


def serve(server: Server, app: ApiServer, listener: socket.socket) -> None:
    """Serve until a signal, or until `server.should_exit`."""
    tune()
    app.start()
    try:
        asyncio.run(server.serve(sockets=[listener]))
    finally:
        app.stop()
        listener.close()
