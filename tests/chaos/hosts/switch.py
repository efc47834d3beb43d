"""An Ethernet switch between the hosts of a test, which loses and delays frames as it is told.

It stands in for `tc netem`, which not every kernel has, and needs no more than /dev/net/tun. It is
a program of its own: it makes one interface for each name among its arguments, says `up`, and then
reads rules from its standard input, a line of JSON for all that hold from then on:

    [["h1", "*", 1.0, 0, 0], ["h2", "h3", 0.1, 0.05, 0.02]]

A rule has the host that a frame comes from, the one that it goes to, the share that is lost, and by
how many seconds the others are late: at least, and at most beyond that.
"""

from __future__ import annotations

import fcntl
import heapq
import json
import os
import random
import select
import struct
import sys
import time
from collections.abc import Sequence

_SET_INTERFACE, _TAP, _NO_HEADER = 0x400454CA, 0x0002, 0x1000
_FRAME = 65536
ADDRESS = 6  # octets

Rule = tuple[str, str, float, float, float]


def open_interface(name: str) -> int:
    """Makes an interface, whose frames are read from and written to the file that is returned."""
    file = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(file, _SET_INTERFACE, struct.pack("16sH", name.encode(), _TAP | _NO_HEADER))
    return file


class Switch:
    """Forwards frames to the interface on which their destination was seen, or to all others."""

    def __init__(self, names: Sequence[str]) -> None:
        self._names = {open_interface(name): name for name in names}
        self._places: dict[bytes, int] = {}  # the file behind which an address was seen
        self._rules: Sequence[Rule] = ()
        self._late: list[tuple[float, int, int, bytes]] = []
        self._count = 0
        self._random = random.Random(len(names))

    def run(self) -> None:
        """Forwards until the standard input ends."""
        poll = select.poll()
        for file in (*self._names, 0):
            poll.register(file, select.POLLIN)
        while True:
            wait = max(0.0, self._late[0][0] - time.monotonic()) * 1000 if self._late else None
            for file, _ in poll.poll(wait):
                if file != 0:
                    self._forward_all(file)
                elif not (line := sys.stdin.readline()):
                    return
                else:
                    self._rules = json.loads(line)
                    print("ok", flush=True)  # noqa: T201 - the answer
            while self._late and self._late[0][0] <= time.monotonic():
                _, _, to, frame = heapq.heappop(self._late)
                _write(to, frame)

    def _forward_all(self, file: int) -> None:
        while True:
            try:
                frame = os.read(file, _FRAME)
            except OSError:  # none is left, or the interface is down
                return
            self._places[frame[ADDRESS : 2 * ADDRESS]] = file
            there = self._places.get(frame[:ADDRESS])
            for to in self._names if there is None else (there,):
                if to != file:
                    self._send(file, to, frame)

    def _send(self, file: int, to: int, frame: bytes) -> None:
        late = 0.0
        for source, destination, loss, delay, more in self._rules:
            if source in ("*", self._names[file]) and destination in ("*", self._names[to]):
                if self._random.random() < loss:
                    return
                late += delay + more * self._random.random()
        if not late:
            _write(to, frame)
            return
        self._count += 1
        heapq.heappush(self._late, (time.monotonic() + late, self._count, to, frame))


def _write(file: int, frame: bytes) -> None:
    try:
        os.write(file, frame)
    except OSError:
        return  # the interface is down, or its queue is full: a switch drops the frame then


if __name__ == "__main__":
    switch = Switch(sys.argv[1:])
    print("up", flush=True)  # noqa: T201 - the answer
    switch.run()
