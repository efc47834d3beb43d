"""Ports for the servers that tests start."""

from __future__ import annotations

import socket


def free_port() -> int:
    """Returns a TCP port of the loopback address that nobody listens on now."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])
