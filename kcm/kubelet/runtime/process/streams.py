"""Exec and attach: pipes or a terminal between the caller and the supervisor."""

from __future__ import annotations

import fcntl
import os
import struct
import termios
import threading
import time
from collections.abc import Sequence
from pathlib import Path

from kcm.errors import ExecTimeout
from kcm.kubelet.cri import ExecResult, StreamOptions
from kcm.kubelet.runtime.process.client import SupervisorConnection, readable

MOST_OUTPUT = 16 * 1024 * 1024  # bytes that exec_sync keeps of each stream
_LATE = 0.5  # seconds in which children of a command may still write after its exit


class ProcessStream:
    """Implements cri.Stream by a connection to a supervisor."""

    def __init__(self, path: Path) -> None:
        self.stdin: int | None = None
        self.stdout: int | None = None
        self.stderr: int | None = None
        self._terminal = -1  # the master of an exec's terminal
        self._ours: list[int] = []
        self._theirs: list[int] = []
        self._exit_code: int | None = None
        self._connection = SupervisorConnection(path)
        self._lock = threading.Lock()

    def exec(self, command: Sequence[str], wanted: StreamOptions) -> None:
        """Starts the command. Raises ContainerRuntimeError."""
        fields = [("op", "exec"), *(("argv", word) for word in command)]
        if wanted.tty:
            fields += [("tty", "1"), ("env", "TERM=xterm")]
            self._open_terminal(wanted)
        else:
            self._theirs = [
                self._read_end() if wanted.stdin else self._null(),
                self._write_end("stdout") if wanted.stdout else self._null(),
                self._write_end("stderr") if wanted.stderr else self._null(),
            ]
        self._ask(fields)

    def attach(self, wanted: StreamOptions) -> None:
        """Connects to the main process. Raises ContainerRuntimeError."""
        fields = [("op", "attach")]
        if wanted.stdin:
            fields.append(("stream", "stdin"))
            self._theirs.append(self._read_end())
        for name, is_wanted in (("stdout", wanted.stdout), ("stderr", wanted.stderr)):
            if is_wanted:
                fields.append(("stream", name))
                self._theirs.append(self._write_end(name))
        self._ask(fields)

    def _ask(self, fields: list[tuple[str, str]]) -> None:
        try:
            self._connection.ask(fields, self._theirs)
        except BaseException:  # it is raised again; our descriptors have no other owner yet
            self.close()
            raise
        finally:
            for fd in self._theirs:
                os.close(fd)
            self._theirs = []

    def _open_terminal(self, wanted: StreamOptions) -> None:
        self._terminal, slave = os.openpty()
        self._ours.append(self._terminal)
        self._theirs.append(slave)
        for name, is_wanted in (("stdin", wanted.stdin), ("stdout", wanted.stdout)):
            if is_wanted:
                setattr(self, name, os.dup(self._terminal))
                self._ours.append(getattr(self, name))

    def _read_end(self) -> int:
        theirs, ours = os.pipe()
        self.stdin = ours
        self._ours.append(ours)
        return theirs

    def _write_end(self, name: str) -> int:
        ours, theirs = os.pipe()
        setattr(self, name, ours)
        self._ours.append(ours)
        return theirs

    def _null(self) -> int:
        return os.open(os.devnull, os.O_RDWR)

    def close_stdin(self) -> None:
        """Closes the input. With a terminal, sends its end-of-file character before."""
        with self._lock:
            if self.stdin is None:
                return
            if self._terminal >= 0:
                os.write(self.stdin, b"\x04")
            self._ours.remove(self.stdin)
            os.close(self.stdin)
            self.stdin = None

    def resize(self, columns: int, rows: int) -> None:
        """Sets the terminal's size."""
        if self._terminal >= 0:
            fcntl.ioctl(
                self._terminal, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0)
            )
        else:
            self._connection.ask([("op", "resize"), ("columns", str(columns)), ("rows", str(rows))])

    def wait(self, timeout: float | None = None) -> int | None:
        """Returns the exit code; None if the command still runs after `timeout` seconds."""
        if self._exit_code is None:
            self._exit_code = self._connection.exit_code(timeout)
        return self._exit_code

    def close(self) -> None:
        """Closes everything. An exec that still runs is killed."""
        with self._lock:
            self._connection.close()
            for fd in self._ours:
                os.close(fd)
            self._ours = []
            self.stdin = self.stdout = self.stderr = None
            self._terminal = -1


def run_to_end(stream: ProcessStream, timeout: float) -> ExecResult:
    """Collects the output of a command until it exits. A timeout of 0 is no limit.

    Raises ExecTimeout after `timeout` seconds; closing the stream then kills the command.
    """
    until = time.monotonic() + timeout if timeout > 0 else None
    assert stream.stdout is not None
    assert stream.stderr is not None
    kept: dict[int, list[bytes]] = {stream.stdout: [], stream.stderr: []}
    sizes = dict.fromkeys(kept, 0)
    open_ = set(kept)
    names = (stream.stdout, stream.stderr)
    while open_ or stream.wait(0) is None:
        if until is not None and time.monotonic() >= until:
            if stream.wait(0) is None:
                raise ExecTimeout(f"the command did not end within {timeout:g}s and was killed")
            break
        for fd in readable(open_, 0.1 if open_ else 0.02):
            data = os.read(fd, 65536)
            if not data:
                open_.discard(fd)
            elif sizes[fd] < MOST_OUTPUT:
                kept[fd].append(data)
                sizes[fd] += len(data)
        if open_ and stream.wait(0) is not None:
            late = time.monotonic() + _LATE
            until = late if until is None else min(until, late)
    stdout, stderr = (b"".join(kept[fd])[:MOST_OUTPUT] for fd in names)
    return ExecResult(stdout, stderr, stream.wait() or 0)
