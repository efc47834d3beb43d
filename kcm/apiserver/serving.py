"""The HTTP server that runs the app: its socket, TLS, start and graceful stop."""

from __future__ import annotations

import asyncio
import socket
import threading
from asyncio.sslproto import SSLProtocol
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import structlog

from kcm.apiserver.app import ApiServer
from kcm.apiserver.credentials import Certificate
from kcm.apiserver.http.connection import LimitedConnection
from kcm.apiserver.http.entrance import Entrance
from kcm.apiserver.http.limits import Limits
from kcm.apiserver.http.unauthenticated import UnauthenticatedConnections
from kcm.http import listening
from kcm.http.serving import TLSFiles, build_config
from kcm.interpreter import tune
from kcm.memory import MemoryKeeper

log = structlog.get_logger("kcm.apiserver")

GRACE = 5  # seconds for requests in progress when the server stops
LINGER = 0.5  # seconds until idle connections are closed; most clients notice only then
KEEP_ALIVE = 75  # seconds that an idle connection stays open
# Seconds that the first requests wait for the watch caches. Envtest asks for /healthz every 100 ms,
# and would not ask again at once if it were told that they are not filled yet.
FILL_TIMEOUT = 0.5


@dataclass(frozen=True)
class Address:
    """The address and port to listen on. Port 0 means any free port."""

    host: str = "127.0.0.1"
    port: int = 8001


def bind(address: Address) -> socket.socket:
    """Returns a listening socket. Raises ConfigurationError, which names the port and its flag."""
    return listening.listen(address.host, address.port, "--port")


def url_of(
    listener: socket.socket, certificate: Certificate | None, endpoint: Address | None = None
) -> str:
    """Returns the URL by which clients reach the server: at `endpoint`, or on this machine."""
    host, port = listener.getsockname()[:2]
    host = listening.LOOPBACK_OF_ALL.get(host, host)
    if endpoint is not None:
        host, port = endpoint.host, endpoint.port or port
    shown = f"[{host}]" if ":" in host else host
    return f"{'https' if certificate else 'http'}://{shown}:{port}"


# asyncio's buffer of 256 KiB for each TLS connection is most of an idle watcher's memory, and of a
# connection to a kubelet. Peers send little, and larger messages take several reads.
SSLProtocol.max_size = 16 * 1024


class App(Protocol):
    """What `ApiHttpServer` needs of an ASGI app; `ApiServer` is one."""

    limits: Limits
    unauthenticated: UnauthenticatedConnections

    def begin_shutdown(self) -> None:
        """Says to those who ask that the server is about to stop."""

    def stop_watches(self) -> None:
        """Ends the streams, because the server stops."""

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Handles a request."""


class ApiHttpServer(listening.Server):
    """Runs the app.

    When it shuts down, it stops the app's streams before it waits for connections.
    """

    def __init__(
        self,
        app: App,
        certificate: Certificate | None,
        authorities: Path | None = None,
        *,
        linger: float = LINGER,
        delay: float = 0.0,
    ) -> None:
        """`authorities` is the file of the authorities that sign client certificates. When it has
        to stop, the server serves on for `delay` seconds, and `linger` seconds after that it closes
        idle connections.
        """
        self.app = app
        self._linger = linger
        self._delay = delay
        self._memory = MemoryKeeper()
        self._entrance = Entrance(app.unauthenticated, app.limits.tls_handshake_timeout or None)
        super().__init__(
            build_config(
                app,
                tls=TLSFiles(certificate.certificate, certificate.key, authorities)
                if certificate
                else None,
                connection=self._entrance.open,
                keep_alive=KEEP_ALIVE,
                graceful_shutdown=GRACE,
            )
        )

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Starts to listen. TLS is the entrance's, so uvicorn accepts plain connections."""
        self._entrance.tls, self.config.ssl = self.config.ssl, None
        await super().startup(sockets)

    async def on_tick(self, counter: int) -> bool:
        """Reports whether the server has to stop. Looks after the memory of its own process."""
        if threading.current_thread() is threading.main_thread():
            self._memory.look()
        return await super().on_tick(counter)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Serves on for the delay, stops the streams, then shuts down as uvicorn does."""
        self.app.begin_shutdown()
        over = asyncio.get_running_loop().time() + self._delay
        while not self.force_exit and (left := over - asyncio.get_running_loop().time()) > 0:
            await asyncio.sleep(min(left, listening.LOOK_EVERY))
        self.app.stop_watches()
        asyncio.get_running_loop().call_later(self._linger, self._drop_idle)
        await super().shutdown(sockets)

    def _drop_idle(self) -> None:
        for connection in list(self.server_state.connections):
            if isinstance(connection, LimitedConnection) and connection.idle:
                connection.transport.abort()


def serve(server: ApiHttpServer, app: ApiServer, listener: socket.socket) -> None:
    """Serves until a signal comes or `server.should_exit` is set."""
    tune()
    app.start()
    app.cacher.wait_filled(FILL_TIMEOUT)
    try:
        asyncio.run(server.serve(sockets=[listener]))
    finally:
        app.stop()
        listener.close()
