"""Sends many prepared requests at once, over connections that stay open."""

from __future__ import annotations

import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from queue import SimpleQueue
from types import TracebackType

from bench.api.client import Connection, Server

CONNECTIONS = 16
IDLE = 30.0  # seconds after which an idle connection is reopened; servers close it after 75


class Client:
    """A client with sixteen connections to one server. Thread-safe. Use it as a context manager."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self._free: SimpleQueue[_Kept] = SimpleQueue()
        for _ in range(CONNECTIONS):
            self._free.put(_Kept(server))
        self._pool = ThreadPoolExecutor(CONNECTIONS)

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._pool.shutdown(cancel_futures=True)
        while not self._free.empty():
            self._free.get().close()

    def reopen_idle(self) -> None:
        """Reopens idle connections, so that the next requests do not have to."""
        for _ in range(CONNECTIONS):
            kept = self._free.get()
            kept.reopen_if_idle()
            self._free.put(kept)

    def ask(self, request: bytes) -> bytes:
        """Sends a request; returns the body of the response. Waits for a free connection.

        Raises RuntimeError if the request fails.
        """
        kept = self._free.get()
        try:
            kept.reopen_if_idle()
            return kept.ask(request)
        finally:
            self._free.put(kept)

    def ask_all(self, requests: Sequence[bytes]) -> float:
        """Sends all requests; returns the seconds until the last response. Raises RuntimeError."""
        self.reopen_idle()
        started = time.perf_counter()
        shares = [requests[first::CONNECTIONS] for first in range(CONNECTIONS)]
        list(self._pool.map(self._ask_share, shares))
        return time.perf_counter() - started

    def _ask_share(self, requests: Sequence[bytes]) -> None:
        kept = self._free.get()
        try:
            for request in requests:
                kept.ask(request)
        finally:
            self._free.put(kept)


class _Kept:
    """A connection, and when it was last used."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._connection = Connection(server)
        self._used = time.monotonic()

    def ask(self, request: bytes) -> bytes:
        try:
            return self._connection.ask(request)
        finally:
            self._used = time.monotonic()

    def reopen_if_idle(self) -> None:
        """Reopens the connection if it was idle for more than IDLE seconds."""
        if time.monotonic() - self._used > IDLE:
            self._connection.close()
            self._connection = Connection(self._server)
            self._used = time.monotonic()

    def close(self) -> None:
        self._connection.close()
