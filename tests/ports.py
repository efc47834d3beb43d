"""Ports for the servers that tests start."""

from __future__ import annotations

import secrets
import socket

_FIRST, _LAST = 10_240, 32_767  # below those that Linux gives to connections and to port 0


def free_port() -> int:
    """Returns a TCP port of the loopback address that nobody listens on now.

    Nobody gets it by chance before the test's server does, which may take seconds to start: a
    server of another test on that port would answer in its place.
    """
    while True:
        port = _FIRST + secrets.randbelow(_LAST - _FIRST + 1)
        try:
            socket.create_server(("127.0.0.1", port)).close()
        except OSError:
            continue
        return port
