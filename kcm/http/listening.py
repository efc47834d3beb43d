"""The socket, the server and the checks that all HTTP servers of kcm use."""

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

LOOK_EVERY = 0.5  # seconds between checks whether the server has to stop
# The addresses that stand for all of a machine, each with the one by which it reaches itself.
LOOPBACK_OF_ALL = {"0.0.0.0": "127.0.0.1", "::": "::1"}
_HOST = re.compile(r"(?:\[(?P<bracketed>[0-9A-Fa-f:.]+)\]|(?P<host>[^:\[\]]+))(?::[0-9]{0,5})?")
_UNUSABLE = (errno.EACCES, errno.EADDRINUSE)


class Server(uvicorn.Server):
    """A uvicorn server that wakes up twice a second when it is idle, instead of ten times."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Handles signals as uvicorn does, but does not raise them again when the server stops.

        So a process whose server was stopped by a signal exits with code 0.
        """
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = {number: signal.signal(number, self.handle_exit) for number in HANDLED_SIGNALS}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    _serving: tuple[asyncio.AbstractEventLoop, asyncio.Event] | None = None

    async def main_loop(self) -> None:
        """Runs until the server has to stop."""
        asked = asyncio.Event()
        self._serving = asyncio.get_running_loop(), asked
        while not await self.on_tick(0):
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(asked.wait(), LOOK_EVERY)

    def ask_to_stop(self) -> None:
        """Makes the server stop at once, after the requests in progress. Any thread may call it."""
        self.should_exit = True
        if self._serving is not None:
            loop, asked = self._serving
            with contextlib.suppress(RuntimeError):  # the loop is closed: the server has stopped
                loop.call_soon_threadsafe(asked.set)


def listen(host: str, port: int, flag: str) -> socket.socket:
    """Returns a listening TCP socket. Port 0 means any free port.

    Raises PortTaken, which names the port and `flag`, and ConfigurationError for an invalid
    address.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # asyncio disables Nagle's algorithm only if the protocol is given. Otherwise every response
    # would wait 40 ms for the client's delayed acknowledgement.
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


@lru_cache(maxsize=64)  # a server's clients send few different Host headers
def is_loopback_host(header: str) -> bool:
    """Reports whether a Host header names this machine: localhost or a loopback address."""
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
    """Reports whether an Authorization header has this bearer token. False for an empty token."""
    scheme, _, given = authorization.partition(" ")
    same = hmac.compare_digest(given.strip().encode(), token.encode())
    return scheme.lower() == "bearer" and bool(token) and same
