"""The HTTP server around the node's API, in a thread of its own."""

from __future__ import annotations

import asyncio
import socket
import threading
from pathlib import Path

import structlog
import uvicorn

from kcm.http.upgrades import UpgradableConnection
from kcm.kubelet.server.app import KubeletServer

log = structlog.get_logger("kcm.kubelet")

_GRACE = 2  # seconds for what is under way when the server ends


class NodeServer:
    """Serves on a listening socket from `start` until `stop`."""

    def __init__(
        self,
        app: KubeletServer,
        listener: socket.socket,
        certificate: Path | None = None,
        key: Path | None = None,
    ) -> None:
        self._app = app
        self._listener = listener
        self._server = uvicorn.Server(
            uvicorn.Config(
                app,
                lifespan="off",
                log_config=None,
                log_level="warning",
                access_log=False,
                server_header=False,
                date_header=False,
                proxy_headers=False,
                http=UpgradableConnection,
                ws="none",
                timeout_graceful_shutdown=_GRACE,
                ssl_certfile=certificate,
                ssl_keyfile=key,
            )
        )
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread = threading.Thread(target=self._run, name="kcm-node-api", daemon=True)

    @property
    def port(self) -> int:
        return int(self._listener.getsockname()[1])

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """End; streams are broken off."""
        self._server.should_exit = True
        if self._loop is not None and self._loop.is_running():
            self._loop.call_soon_threadsafe(self._app.end_streams)
        if self._thread.is_alive():
            self._thread.join(_GRACE + 5)
        self._app.close()

    def _run(self) -> None:
        async def serve() -> None:
            self._loop = asyncio.get_running_loop()
            await self._server.serve(sockets=[self._listener])

        try:
            asyncio.run(serve())
        finally:
            self._listener.close()
