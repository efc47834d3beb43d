"""The HTTP server of the node's API, in a thread of its own."""

from __future__ import annotations

import asyncio
import socket
import threading
from pathlib import Path

import structlog

from kcm import errors
from kcm.http.listening import Server, listen
from kcm.http.serving import TLSFiles, build_config
from kcm.kubelet.options import KubeletOptions
from kcm.kubelet.server.app import KubeletServer
from kcm.kubelet.server.connection import NodeConnection

log = structlog.get_logger("kcm.kubelet")

_SHUTDOWN_GRACE = 2  # seconds for requests that are being handled when the server stops
_STOP_TIMEOUT = 5.0  # more seconds for the server's thread


def listen_for_node(options: KubeletOptions) -> socket.socket:
    """Returns the listening socket of the node's HTTP API.

    If the port is taken and `port_required` is not set, any free port is used. Raises PortTaken,
    and ConfigurationError for an address that this machine does not have.
    """
    host = options.bind_address or options.node_ip
    try:
        return listen(host, options.port, "--port")
    except errors.PortTaken:
        if options.port_required:
            raise
    log.info("The kubelet's usual port is taken, using another one", port=options.port)
    return listen(host, 0, "--port")


class NodeServer:
    """Serves the node's HTTP API on a listening socket from `start` until `stop`."""

    def __init__(
        self,
        app: KubeletServer,
        listener: socket.socket,
        certificate: tuple[Path, Path] | None = None,
        authorities: Path | None = None,
    ) -> None:
        """`certificate` is the files of the certificate and its key.

        Without it, plain HTTP is served. `authorities` is the file of the authorities that sign
        client certificates.
        """
        self._app = app
        self._listener = listener
        self._server = Server(
            build_config(
                app,
                tls=TLSFiles(*certificate, authorities) if certificate else None,
                connection=NodeConnection,
                graceful_shutdown=_SHUTDOWN_GRACE,
            )
        )
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread = threading.Thread(target=self._run, name="kcm-node-api", daemon=True)

    def start(self) -> None:
        """Starts the server's thread."""
        self._thread.start()

    def use_certificate(self, pem: Path) -> None:
        """Uses another certificate, whose file has its key, too, for new connections."""
        context = self._server.config.ssl
        if context is not None:
            context.load_cert_chain(pem)

    def stop(self) -> None:
        """Stops serving and closes the socket. Aborts streams."""
        self._server.should_exit = True
        if self._loop is not None and self._loop.is_running():
            self._loop.call_soon_threadsafe(self._app.stop_streams)
        if self._thread.is_alive():
            self._thread.join(_SHUTDOWN_GRACE + _STOP_TIMEOUT)
        self._app.close()
        self._listener.close()

    def _run(self) -> None:
        async def serve() -> None:
            self._loop = asyncio.get_running_loop()
            await self._server.serve(sockets=[self._listener])

        asyncio.run(serve())
