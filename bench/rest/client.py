"""Sends many prepared requests at once, over connections that stay open."""

from __future__ import annotations

import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from queue import SimpleQueue
from types import TracebackType

from bench.api.client import Connection, Server

CONNECTIONS = 16


class Client:
    """Sixteen connections to one server. Any thread may ask. Use it as a context manager."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self._connections = [Connection(server) for _ in range(CONNECTIONS)]
        self._free: SimpleQueue[Connection] = SimpleQueue()
        for connection in self._connections:
            self._free.put(connection)
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
        for connection in self._connections:
            connection.close()

    def ask(self, request: bytes) -> bytes:
        """Returns the body of the answer, once a connection is free. Raises RuntimeError."""
        connection = self._free.get()
        try:
            return connection.ask(request)
        finally:
            self._free.put(connection)

    def ask_all(self, requests: Sequence[bytes]) -> float:
        """Returns the seconds until all requests are answered. Raises RuntimeError."""
        started = time.perf_counter()
        shares = [requests[first::CONNECTIONS] for first in range(CONNECTIONS)]
        list(self._pool.map(self._ask_share, shares))
        return time.perf_counter() - started

    def _ask_share(self, requests: Sequence[bytes]) -> None:
        connection = self._free.get()
        try:
            for request in requests:
                connection.ask(request)
        finally:
            self._free.put(connection)
