"""The supervisor's socket: one connection per request, with file descriptors passed along.

A request is a message (`wire.py`) whose field `op` is exec, attach, stop or resize. Replies are
lines: `ok`, `error <message>`, `exit <code>`.
"""

from __future__ import annotations

import os
import socket
import sys

from kcm.kubelet.runtime.process.supervisor.streams import Reader
from kcm.kubelet.runtime.process.wire import HEADER, Fields, decode

_BACKLOG = 64
_MOST_FDS = 3
_INT = 4  # bytes of a descriptor in a control message


def listen(path: str) -> socket.socket:
    """Returns a listening socket at the path, to which only this user can connect."""
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    mask = os.umask(0o177)
    try:
        listener.bind(path)
    finally:
        os.umask(mask)
    listener.listen(_BACKLOG)
    listener.setblocking(False)
    return listener


class ClientConnection:
    """The connection of one client: its request, and what that started."""

    def __init__(self, listener: socket.socket) -> None:
        self.socket, _ = listener.accept()
        self.socket.setblocking(False)
        self.fd = self.socket.fileno()  # -1 once it is closed
        self.fds: list[int] = []
        self.pid = 0  # of its exec's main process
        self.stdin = -1  # the input of an attach, which the supervisor reads
        self.readers: list[Reader] = []  # the outputs of an attach
        self._data = b""

    def receive(self) -> tuple[bool, list[Fields]]:
        """Receives data.

        Returns whether the client is still connected, and its complete messages.
        """
        space = socket.CMSG_SPACE(_MOST_FDS * _INT)
        try:
            data, control, _, _ = self.socket.recvmsg(65536, space)
        except BlockingIOError:
            return True, []
        except OSError:
            return False, []
        for level, kind, body in control:
            if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
                self.fds += _descriptors(body)
        self._data += data
        return bool(data), self._messages()

    def _messages(self) -> list[Fields]:
        messages: list[Fields] = []
        while len(self._data) >= HEADER:
            end = HEADER + int.from_bytes(self._data[:HEADER], "big")
            if len(self._data) < end:
                break
            messages.append(decode(self._data[HEADER:end]))
            self._data = self._data[end:]
        return messages

    def reply(self, line: str) -> None:
        """Sends a line to the client. Does nothing if the client has left."""
        try:
            self.socket.send(f"{line}\n".encode("utf-8", "replace"))
        except OSError:
            return

    def drop_fds(self) -> None:
        """Closes the descriptors that were passed along and have no other owner."""
        for fd in self.fds:
            os.close(fd)
        self.fds = []

    def close(self) -> None:
        """Closes everything except the input of an attach, which is still read to its end."""
        self.drop_fds()
        for reader in self.readers:
            reader.close()
        self.socket.close()
        self.fd = -1


def _descriptors(body: bytes) -> list[int]:
    whole = len(body) - len(body) % _INT
    fds = [int.from_bytes(body[at : at + _INT], sys.byteorder) for at in range(0, whole, _INT)]
    for fd in fds:
        os.set_inheritable(fd, False)
    return fds
