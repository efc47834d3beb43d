"""Copies a container's output to its log and to attached clients, and their input to it.

Guarantees bounded memory. Output is read only when earlier output is in the log, so a full disk
blocks the container as a full pipe does. An attached client that is BACKLOG bytes behind is
dropped. Input is read only when the container has taken earlier input.
"""

from __future__ import annotations

import os
import time

from kcm.kubelet.runtime.process.supervisor.logs import Lines, LogFile

BACKLOG = 256 * 1024  # bytes
_READ = 4096  # bytes of output at a time; with prefixes, short lines take 20 times that


class Output:
    """One output of the container: standard output, standard error, or the terminal."""

    def __init__(self, fd: int, name: str, log: LogFile) -> None:
        self.fd = fd
        self.name = name
        self.unwritten = b""  # log lines that could not be written yet
        self.readers: list[Reader] = []
        self._lines = Lines(name.encode())
        self._log = log
        os.set_blocking(fd, False)

    def read(self) -> bool:
        """Reads once, and copies the data to log and clients.

        Returns False at the end of the stream.
        """
        try:
            data = os.read(self.fd, _READ)
        except BlockingIOError:
            return True
        except OSError:  # EIO: a terminal whose last user is gone
            data = b""
        now = time.time_ns()
        lines = self._lines.feed(data, now) if data else self._lines.finish(now)
        self.unwritten = self._log.write(lines)
        for reader in self.readers:
            reader.give(data)
        self.readers = [reader for reader in self.readers if not reader.done]
        return bool(data)

    def retry(self) -> None:
        """Tries again to write the log lines that could not be written."""
        self.unwritten = self._log.write(self.unwritten)

    def finish(self) -> None:
        """Reads what is left without waiting, and closes the descriptors.

        Log lines that cannot be written are lost.
        """
        self.retry()
        ended = False
        while not ended:
            try:
                data = os.read(self.fd, _READ)
            except OSError:
                data = b""
            ended = not data
            now = time.time_ns()
            self._log.write(self._lines.feed(data, now) if data else self._lines.finish(now))
            for reader in self.readers:
                reader.give(data)
        os.close(self.fd)
        for reader in self.readers:
            reader.close()


class Reader:
    """A client that is attached to an output of the container."""

    def __init__(self, fd: int) -> None:
        self.fd = fd
        self.done = False
        self._waiting = b""
        os.set_blocking(fd, False)

    def give(self, data: bytes) -> None:
        """Writes data to the client. Drops the client if it is too far behind."""
        self._waiting += data
        self.flush()
        if len(self._waiting) > BACKLOG:
            self.close()

    def flush(self) -> None:
        """Writes as much of the waiting data as the client takes."""
        try:
            while self._waiting and not self.done:
                self._waiting = self._waiting[os.write(self.fd, self._waiting) :]
        except BlockingIOError:
            return
        except OSError:
            self.close()

    @property
    def behind(self) -> bool:
        return bool(self._waiting) and not self.done

    def close(self) -> None:
        if not self.done:
            os.close(self.fd)
        self.done = True
        self._waiting = b""


class Input:
    """The container's standard input."""

    def __init__(self, fd: int) -> None:
        self.fd = fd
        self.waiting = b""
        self._closing = False
        os.set_blocking(fd, False)

    def give(self, data: bytes) -> None:
        """Writes data to the container."""
        self.waiting += data
        self.flush()

    def flush(self) -> None:
        """Writes as much of the waiting data as the container takes."""
        try:
            while self.waiting and self.fd >= 0:
                self.waiting = self.waiting[os.write(self.fd, self.waiting) :]
        except BlockingIOError:
            return
        except OSError:
            self.waiting, self._closing = b"", True
        if self._closing and self.fd >= 0:
            os.close(self.fd)
            self.fd = -1

    def close(self) -> None:
        """Closes the input once the waiting data is written."""
        self._closing = True
        self.flush()
