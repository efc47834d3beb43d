"""The HTTP server around the app: port, TLS, start, graceful stop."""

from __future__ import annotations

import asyncio
import socket
from asyncio.sslproto import SSLProtocol
from dataclasses import dataclass

import structlog
import uvicorn

from kcm.apiserver.app import ApiServer
from kcm.apiserver.credentials import Certificate
from kcm.listening import listen

log = structlog.get_logger("kcm.apiserver")

GRACE = 5  # seconds for requests under way when the server stops
KEEP_ALIVE = 75  # seconds that an idle connection stays open


@dataclass(frozen=True)
class Address:
    """Where to listen; port 0 takes any that is free."""

    host: str = "127.0.0.1"
    port: int = 8001


def bind(address: Address) -> socket.socket:
    """A listening socket. Raises ConfigurationError, naming port and flag."""
    return listen(address.host, address.port, "--port")


def url_of(listener: socket.socket, certificate: Certificate | None) -> str:
    """Where clients reach the server."""
    host, port = listener.getsockname()[:2]
    shown = f"[{host}]" if ":" in host else host
    return f"{'https' if certificate else 'http'}://{shown}:{port}"


# asyncio keeps a buffer of 256 KiB per TLS connection, most of an idle watcher's memory.
# Clients send little: what is larger than this comes in several reads.
SSLProtocol.max_size = 16 * 1024


class Server(uvicorn.Server):
    """uvicorn, ending the app's streams before it waits for connections."""

    def __init__(self, app: ApiServer, certificate: Certificate | None) -> None:
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
                http="httptools",
                ws="none",
                timeout_keep_alive=KEEP_ALIVE,
                timeout_graceful_shutdown=GRACE,
                ssl_certfile=certificate.certificate if certificate else None,
                ssl_keyfile=certificate.key if certificate else None,
            )
        )

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """End the streams, then as uvicorn does."""
        self._app.end_watches()
        await super().shutdown(sockets)


def serve(server: Server, app: ApiServer, listener: socket.socket) -> None:
    """Serve until a signal, or until `server.should_exit`."""
    app.start()
    try:
        asyncio.run(server.serve(sockets=[listener]))
    finally:
        app.stop()
        listener.close()
