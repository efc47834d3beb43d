"""Watches pods over many connections, without parsing the events.

    python -m bench.api.watching_process HOST PORT CERTIFICATE TOKEN WATCHERS WRITES

The program prints `ready` when all watchers are connected. When its standard input is closed, it
prints as JSON when each of the pods seen-000001 to seen-WRITES had reached all watchers (monotonic
seconds).
"""

from __future__ import annotations

import asyncio
import json
import sys
import time

from bench.api.client import Server

PATH = "/api/v1/namespaces/default/pods?watch=1&allowWatchBookmarks=true&resourceVersion=0"
MARK = b'"name":"seen-'
DIGITS = 6


class Watcher(asyncio.Protocol):
    """One watch stream. It reports the pods whose names it receives."""

    def __init__(self, request: bytes, arrivals: Arrivals) -> None:
        self._request = request
        self._arrivals = arrivals
        self._seen = 0
        self._rest = b""
        self.answered = asyncio.Event()

    def protocol(self) -> Watcher:
        """Returns itself; asyncio calls it to get a protocol."""
        return self

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        transport.write(self._request)

    def data_received(self, data: bytes) -> None:
        self.answered.set()
        # The pod's name may begin in one read and end in the next.
        data = self._rest + data
        self._rest = data[-(len(MARK) + DIGITS) :]
        at = data.rfind(MARK)
        if at < 0 or at + len(MARK) + DIGITS > len(data):
            return
        last = int(data[at + len(MARK) : at + len(MARK) + DIGITS])
        for number in range(self._seen + 1, last + 1):
            self._arrivals.count(number)
        self._seen = max(self._seen, last)


class Arrivals:
    """Records when each write has reached all watchers."""

    def __init__(self, watchers: int, writes: int) -> None:
        self._missing = [watchers] * (writes + 1)
        self.complete = [0.0] * (writes + 1)

    def count(self, number: int) -> None:
        """Counts a watcher that has seen this write."""
        self._missing[number] -= 1
        if not self._missing[number]:
            self.complete[number] = time.monotonic()


async def main(server: Server, count: int, writes: int) -> None:
    request = server.request("GET", PATH)
    trust = server.trust
    arrivals = Arrivals(count, writes)
    loop = asyncio.get_running_loop()
    for _ in range(count):
        watcher = Watcher(request, arrivals)
        await loop.create_connection(watcher.protocol, server.host, server.port, ssl=trust)
        await watcher.answered.wait()
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    await loop.run_in_executor(None, sys.stdin.read)
    json.dump(arrivals.complete[1:], sys.stdout)


if __name__ == "__main__":
    host, port, certificate, token, count, writes = sys.argv[1:]
    server = Server(host, int(port), certificate, token)
    asyncio.run(main(server, int(count), int(writes)))
