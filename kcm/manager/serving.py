"""The HTTP server of the manager's pages, in a thread of its own.

Guarantees: a port in use is reported before anything else starts. `stop` returns within a second,
even if connections are open.
"""

from __future__ import annotations

import socket
import threading
from functools import partial
from pathlib import Path
from typing import Any

import structlog

from kcm import errors
from kcm.clock import Clock
from kcm.http.listening import Server, listen
from kcm.http.serving import TLSFiles, build_config
from kcm.loops import start_thread
from kcm.options.groups import ServingOptions

log = structlog.get_logger("kcm.health")

PORT_RETRY_EVERY = 2.0  # seconds between attempts to bind a port that another manager uses
STOP_TIMEOUT = 0.8  # seconds


def bind(options: ServingOptions) -> socket.socket:
    """Returns a listening socket. Raises PortTaken, with port and flag, and ConfigurationError."""
    return listen(options.bind_address, options.secure_port, "--secure-port (0: none)")


def read_token(options: ServingOptions) -> str:
    """Returns the bearer token, "" without a file. Raises ConfigurationError."""
    path = options.bearer_token_file
    if not path:
        return ""
    try:
        token = Path(path).read_text("utf-8").strip()
    except (OSError, UnicodeError) as error:
        raise errors.ConfigurationError(f"--bearer-token-file {path}: {error}") from error
    if not token:
        raise errors.ConfigurationError(f"--bearer-token-file {path} is empty")
    return token


class HealthServer:
    """Serves `app` at the address and with the TLS files of the options."""

    def __init__(self, app: Any, options: ServingOptions, clock: Clock) -> None:
        self._options = options
        self._clock = clock
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        tls = None
        if options.tls_cert_file:
            tls = TLSFiles(options.tls_cert_file, options.tls_private_key_file)
        config = build_config(app, tls=tls)
        try:
            config.load()
        except (OSError, ValueError) as error:
            raise errors.ConfigurationError(
                f"--tls-cert-file {options.tls_cert_file}, "
                f"--tls-private-key-file {options.tls_private_key_file}: {error}"
            ) from error
        self._server = Server(config)

    def start(self) -> None:
        """Starts to serve, with --secure-port-wait as soon as the port is free.

        Raises PortTaken and ConfigurationError.
        """
        if not self._options.secure_port:
            return
        listener: socket.socket | None = None
        try:
            listener = bind(self._options)
        except errors.PortTaken as error:
            if not self._options.secure_port_wait:
                raise
            log.info("another process serves the port, waiting for it", reason=str(error))
        self._thread = start_thread("kcm-health", partial(self._serve, listener))

    def _serve(self, listener: socket.socket | None) -> None:
        while listener is None:
            if self._clock.wait(self._stop, PORT_RETRY_EVERY):
                return
            try:
                listener = bind(self._options)
            except errors.ConfigurationError:
                continue
        if not self._stop.is_set():
            scheme = "https" if self._options.tls_cert_file else "http"
            host, port = listener.getsockname()[:2]
            log.info("serving health and metrics", url=f"{scheme}://{host}:{port}")
            self._server.run(sockets=[listener])
        listener.close()

    def stop(self) -> None:
        """Stops serving, and closes open connections."""
        self._stop.set()
        self._server.should_exit = True
        if self._thread is not None:
            self._thread.join(STOP_TIMEOUT / 2)
            self._server.force_exit = True
            self._thread.join(STOP_TIMEOUT / 2)
