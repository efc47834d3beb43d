"""Ports for the servers that tests start."""

from __future__ import annotations

import os
import secrets
import socket

_FIRST, _LAST = 10_240, 32_767  # below those that Linux gives to connections and to port 0
_WORKERS = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
_WORKER = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
_returned: set[int] = set()  # by free_port, in this process


def free_port() -> int:
    """Returns a TCP port of the loopback address that nobody listens on now.

    No other test of this run gets it, as the test's server may take seconds to start: a server of
    another test on that port would answer in its place, or leave it without one. Each worker of
    pytest-xdist has ports of its own.
    """
    while True:
        port = _FIRST + secrets.randbelow(_LAST - _FIRST + 1)
        if port % _WORKERS != _WORKER or port in _returned:
            continue
        try:
            socket.create_server(("127.0.0.1", port)).close()
        except OSError:
            continue
        _returned.add(port)
        return port
