"""Passes a container's output to its log and to attached readers, and their input to it.

Guarantees bounded memory: output is read only when what was read before is in the log (a full disk
stops the container, as a full pipe does); an attached reader that is BACKLOG behind is dropped;
input is read only when the container has taken what came before.
"""

from __future__ import annotations

import os
import time

from kcm.kubelet.runtime.process.supervisor.logs import Lines, LogFile

BACKLOG = 256 * 1024  # bytes
_READ = 4096  # bytes of output at a time: with its times, a flood of short lines is 20 times that


class Output:
    """One output of the container: standard output, error, or the terminal."""

    def __init__(self, fd: int, name: str, log: LogFile) -> None:
        self.fd = fd
        self.name = name
        self.unwritten = b""  # log lines that the disk did not take
        self.readers: list[Reader] = []
        self._lines = Lines(name.encode())
        self._log = log
        os.set_blocking(fd, False)

    def read(self) -> bool:
        """Reads once; returns False at the end of the stream."""
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
        """Writes what the disk did not take before."""
        self.unwritten = self._log.write(self.unwritten)

    def finish(self) -> None:
        """Reads what is left without waiting; what the disk does not take is lost."""
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
    """A client that is attached to an output."""

    def __init__(self, fd: int) -> None:
        self.fd = fd
        self.done = False
        self._waiting = b""
        os.set_blocking(fd, False)

    def give(self, data: bytes) -> None:
        """Passes data on, as far as the client takes it."""
        self._waiting += data
        self.flush()
        if len(self._waiting) > BACKLOG:
            self.close()

    def flush(self) -> None:
        """Passes on more of what waits."""
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
        """Passes data on."""
        self.waiting += data
        self.flush()

    def flush(self) -> None:
        """Passes on more of what waits."""
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
        """Ends the input once everything was passed on."""
        self._closing = True
        self.flush()
