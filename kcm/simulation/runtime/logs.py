"""The log file of a simulated container, in CRI's format, and the stream of those who attach.

The lines follow from the container's script and its times, so they are written when somebody looks.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from kcm.errors import ContainerRuntimeError
from kcm.loops import start_thread
from kcm.simulation.scripting.output import Line

MOST_BYTES = 10 * 1024 * 1024  # of a log, as of containers that are processes
_LOOK = 0.5  # seconds between two looks at what a container has written


def append(path: str, lines: Iterable[Line]) -> None:
    """Appends lines to the log, which is created. A log of more than MOST_BYTES is put aside, and
    the one before it removed. Raises ContainerRuntimeError.
    """
    text = "".join(f"{_stamp(at)} stdout F {line}\n" for at, line in lines)
    try:
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        if os.path.exists(path) and os.path.getsize(path) > MOST_BYTES:
            _rotate(path)
        with open(path, "a", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        raise ContainerRuntimeError(f"the container's log cannot be written: {error}") from error


def _rotate(path: str) -> None:
    newest = f"{path}.{datetime.now(UTC):%Y%m%d-%H%M%S.%f}"
    for older in _rotated(path):
        older.unlink(missing_ok=True)
    os.replace(path, newest)


def _rotated(path: str) -> list[Path]:
    log = Path(path)
    return [*log.parent.glob(f"{log.name}.2*")]


def remove(path: str) -> None:
    """Removes a log, with the one that was put aside."""
    for file in (Path(path), *_rotated(path)):
        file.unlink(missing_ok=True)


def _stamp(at: datetime) -> str:
    return at.strftime("%Y-%m-%dT%H:%M:%S.%f000Z")


class ScriptStream:
    """Implements cri.Stream: shows what a script says, and then what the container writes.

    `read` returns the newest lines, and the exit code once the container has ended.
    """

    def __init__(self, said: str, read: Callable[[], tuple[list[Line], int | None]]) -> None:
        self.stdin: int | None = None  # what is typed is dropped
        self.stdout: int | None
        self.stderr: int | None = None
        self.stdout, self._write_end = os.pipe()
        self._said = said
        self._read = read
        self._exit_code: int | None = None
        self._ended = threading.Event()
        self._closed = threading.Event()
        start_thread("kcm-simulated-attach", self._talk)

    def _talk(self) -> None:
        try:
            self._say(f"{self._said}\n")
            while not self._closed.is_set():
                lines, code = self._read()
                self._say("".join(f"{text}\n" for _, text in lines))
                if code is not None:
                    self._exit_code = code
                    return
                self._closed.wait(_LOOK)
        except (OSError, ContainerRuntimeError):
            self._exit_code = 0  # the client has left, or the container is removed
        finally:
            os.close(self._write_end)
            self._ended.set()

    def _say(self, text: str) -> None:
        data = text.encode()
        while data:
            data = data[os.write(self._write_end, data) :]

    def close_stdin(self) -> None:
        """Does nothing: there is no input."""

    def resize(self, columns: int, rows: int) -> None:
        """Does nothing: there is no terminal."""

    def wait(self, timeout: float | None = None) -> int | None:
        """Returns the container's exit code; None if it still runs after `timeout` seconds."""
        self._ended.wait(timeout)
        return self._exit_code if self._ended.is_set() else None

    def close(self) -> None:
        """Ends the stream. May be called twice."""
        self._closed.set()
        if self.stdout is not None:
            with suppress(OSError):
                os.close(self.stdout)
            self.stdout = None
