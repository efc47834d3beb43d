"""The HTTP server around the app: port, TLS, start, graceful stop."""

from __future__ import annotations

import asyncio
import socket
from dataclasses import dataclass

import structlog
import uvicorn

from kcm import errors
from kcm.apiserver.app import ApiServer
from kcm.apiserver.credentials import Certificate

log = structlog.get_logger("kcm.apiserver")

GRACE = 5  # seconds for requests under way when the server stops
KEEP_ALIVE = 75  # seconds that an idle connection stays open
_UNUSABLE = (13, 98, 48)  # EACCES, EADDRINUSE on Linux and macOS


@dataclass(frozen=True)
class Address:
    """Where to listen; port 0 takes any that is free."""

    host: str = "127.0.0.1"
    port: int = 8001


def bind(address: Address) -> socket.socket:
    """A listening socket. Raises ConfigurationError, naming port and flag."""
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    # The protocol is named because asyncio turns Nagle's algorithm off only where it is:
    # without, every answer waits 40 ms for the client's delayed acknowledgement.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((address.host, address.port))
        listener.listen(1024)
    except OSError as error:
        listener.close()
        where = f"port {address.port} on {address.host}"
        if error.errno in _UNUSABLE:
            raise errors.ConfigurationError(
                f"{where} cannot be used ({error.strerror}): free it, or choose another with --port"
            ) from error
        raise errors.ConfigurationError(f"--bind-address: {where}: {error.strerror}") from error
    return listener


def url_of(listener: socket.socket, certificate: Certificate | None) -> str:
    """Where clients reach the server."""
    host, port = listener.getsockname()[:2]
    shown = f"[{host}]" if ":" in host else host
    return f"{'https' if certificate else 'http'}://{shown}:{port}"


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
