"""The connection of a kubelet to a supervisor."""

from __future__ import annotations

import os
import select
import socket
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

from kcm.errors import ContainerRuntimeError
from kcm.kubelet.runtime.process.wire import encode, frame

_PATIENCE = 10.0  # seconds for a supervisor to reply
_LONGEST = 100  # bytes of a socket's path; the system's limit is 107 (Linux) or 103


class SupervisorConnection:
    """A connection for one request and its replies.

    Raises ContainerRuntimeError if the supervisor does not reply.
    """

    def __init__(self, path: Path) -> None:
        self._socket = _connect(path)
        self._data = b""

    def ask(self, fields: list[tuple[str, str]], fds: Sequence[int] = ()) -> None:
        """Sends a request, with the descriptors `fds`, and waits for its `ok`.

        The caller still has to close its own `fds`. Raises ContainerRuntimeError if the request
        cannot be sent, fails, or gets no reply in time.
        """
        data = frame(encode(fields))
        try:
            sent = socket.send_fds(self._socket, [data], list(fds)) if fds else 0
            self._socket.sendall(data[sent:])
        except OSError as error:
            raise ContainerRuntimeError(f"the container has ended: {error.strerror}") from error
        reply = self.line(_PATIENCE)
        if not reply or reply.startswith("exit"):  # not in time, or the connection is closed
            raise ContainerRuntimeError("the container has ended")
        kind, _, message = reply.partition(" ")
        if kind == "error":
            raise ContainerRuntimeError(message)

    def exit_code(self, timeout: float | None) -> int | None:
        """Waits for the exit code from the supervisor; returns None after `timeout` seconds.

        Returns 137 if the supervisor dies without sending one, because everything it supervised is
        then killed.
        """
        while True:
            reply = self.line(timeout)
            if reply is None:
                return None
            if reply.startswith("exit "):
                return int(reply.removeprefix("exit "))
            if not reply:
                return 137

    def line(self, timeout: float | None) -> str | None:
        """Returns the next line, "" at the end of the stream, or None after `timeout` seconds."""
        until = None if timeout is None else time.monotonic() + timeout
        while b"\n" not in self._data:
            wait = None if until is None else max(until - time.monotonic(), 0.0)
            if not readable([self._socket.fileno()], wait):
                return None
            try:
                data = self._socket.recv(4096)
            except ConnectionError:
                data = b""
            if not data:
                return ""
            self._data += data
        line, _, self._data = self._data.partition(b"\n")
        return line.decode("utf-8", "replace")

    def close(self) -> None:
        self._socket.close()


def _connect(path: Path) -> socket.socket:
    """Connects to a supervisor's socket."""
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connection.settimeout(_PATIENCE)
    folder = -1
    try:
        if len(os.fsencode(path)) > _LONGEST:
            folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
            connection.connect(f"/proc/self/fd/{folder}/{path.name}")
        else:
            connection.connect(str(path))
    except OSError as error:
        connection.close()
        raise ContainerRuntimeError(f"the container does not run: {error.strerror}") from error
    finally:
        if folder >= 0:
            os.close(folder)
    return connection


def readable(descriptors: Iterable[int], timeout: float | None) -> list[int]:
    """Returns the descriptors that become readable, or closed, within `timeout` seconds.

    Unlike `select.select` it takes descriptors above 1023, which a kubelet with many open files
    has.
    """
    poll = select.poll()
    for descriptor in descriptors:
        poll.register(descriptor, select.POLLIN)
    return [descriptor for descriptor, _ in poll.poll(None if timeout is None else timeout * 1000)]
