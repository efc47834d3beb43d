"""Listening for HTTP: socket and server, and who is let in before anything is served.

What the manager's pages and the API server have in common.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import hmac
import ipaddress
import re
import signal
import socket
import threading
from collections.abc import Iterator
from functools import lru_cache

import uvicorn
from uvicorn.server import HANDLED_SIGNALS

from kcm import errors

LOOK_EVERY = 0.5  # seconds between looks at whether the server shall end
_HOST = re.compile(r"(?:\[(?P<bracketed>[0-9A-Fa-f:.]+)\]|(?P<host>[^:\[\]]+))(?::[0-9]{0,5})?")
_UNUSABLE = (errno.EACCES, errno.EADDRINUSE)


class Server(uvicorn.Server):
    """uvicorn's, which at rest wakes up twice a second instead of ten times."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """As uvicorn's, but a signal that ended the server is not raised once more behind it: a
        server that was asked to stop and did exits with 0."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = {number: signal.signal(number, self.handle_exit) for number in HANDLED_SIGNALS}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    async def main_loop(self) -> None:
        """Until the server shall end."""
        while not await self.on_tick(0):
            await asyncio.sleep(LOOK_EVERY)


def listen(host: str, port: int, flag: str) -> socket.socket:
    """A listening TCP socket; port 0 takes any that is free.

    Raises: PortTaken, naming port and `flag`; ConfigurationError for a wrong address.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # The protocol is named because asyncio turns Nagle's algorithm off only where it is:
    # without, every answer waits 40 ms for the client's delayed acknowledgement.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
        listener.listen(1024)
    except OSError as error:
        listener.close()
        where = f"port {port} on {host}"
        if error.errno in _UNUSABLE:
            raise errors.PortTaken(
                f"{where} cannot be used ({error.strerror}): free it, or choose another with {flag}"
            ) from error
        raise errors.ConfigurationError(f"--bind-address: {where}: {error.strerror}") from error
    return listener


@lru_cache(maxsize=64)  # clients of one server name it in few ways, at every request
def is_loopback_host(header: str) -> bool:
    """Whether a Host header names this machine: localhost or a loopback address, any port."""
    named = _HOST.fullmatch(header)
    if named is None:
        return False
    host = named["bracketed"] or named["host"]
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def bears(authorization: str, token: str) -> bool:
    """Whether an Authorization header carries this bearer token; never for an empty token."""
    scheme, _, given = authorization.partition(" ")
    same = hmac.compare_digest(given.strip().encode(), token.encode())
    return scheme.lower() == "bearer" and bool(token) and same
