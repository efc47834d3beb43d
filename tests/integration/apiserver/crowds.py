"""Many watchers of ConfigMaps over plain HTTP, which count their events."""

from __future__ import annotations

import asyncio
import os
import socket
from pathlib import Path

_REQUEST = (
    b"GET /api/v1/namespaces/default/configmaps?watch=1%s HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n"
)
_MARK = b'{"type":"'


class Crowd:
    """Connections that watch; `events` counts what each of them got."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._writers: list[asyncio.StreamWriter] = []
        self._tasks: list[asyncio.Task[None]] = []
        self.events: list[int] = []

    async def join(self, count: int) -> None:
        """Adds watchers, and waits until the server has answered each."""
        for _ in range(count):
            reader, writer = await asyncio.open_connection("127.0.0.1", self._port)
            writer.write(_REQUEST % b"")
            head = await reader.readuntil(b"\r\n\r\n")
            assert head.startswith(b"HTTP/1.1 200"), head
            self.events.append(0)
            self._writers.append(writer)
            number = len(self.events) - 1
            self._tasks.append(asyncio.ensure_future(self._count(reader, number)))

    async def _count(self, reader: asyncio.StreamReader, number: int) -> None:
        rest = b""
        while data := await reader.read(64 * 1024):
            data = rest + data
            self.events[number] += data.count(_MARK)
            rest = data[-len(_MARK) + 1 :]

    async def leave(self) -> None:
        """Closes all connections."""
        for writer in self._writers:
            writer.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


def connect_sleepers(port: int, count: int) -> list[socket.socket]:
    """Returns connections that watch and never read. The caller closes them."""
    sleepers = []
    for _ in range(count):
        one = socket.socket()
        one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        one.connect(("127.0.0.1", port))
        one.sendall(_REQUEST % b"")
        sleepers.append(one)
    return sleepers


def descriptors(pid: int) -> int:
    """Returns the number of open file descriptors of a process."""
    return len(os.listdir(f"/proc/{pid}/fd"))


def memory(pid: int) -> int:
    """Returns the resident memory of a process in MiB."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.partition("VmRSS:")[2].split()[0]) // 1024
