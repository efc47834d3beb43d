"""Reading what a container printed, from files in CRI's format.

Guarantees: rotated files are read, the oldest first; a file that is put aside while it
is being followed is read to its end. Does not guarantee that a line is there which
rotation deleted before it was read.

Source: pkg/kubelet/kuberuntime/logs/logs.go, Kubernetes 1.33. Departure: the tail may
reach into rotated files.
"""

from __future__ import annotations

import mmap
import os
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from kcm import errors
from kcm.api.times import parse_time

_CHUNK = 256 * 1024  # bytes read at once
_TRUE = ("1", "true", "True", "TRUE", "t", "T")
_WORDS = 4  # time, stream, tag, text


@dataclass(frozen=True)
class LogOptions:
    """What of a log is wanted."""

    follow: bool = False
    previous: bool = False
    timestamps: bool = False
    tail_lines: int | None = None
    since: datetime | None = None
    limit_bytes: int | None = None

    @classmethod
    def of(cls, query: Mapping[str, str], now: datetime) -> LogOptions:
        """From a request's parameters. Raises BadRequest."""
        try:
            seconds, moment = query.get("sinceSeconds"), query.get("sinceTime")
            since = parse_time(moment) if moment else None
            if seconds:
                since = now - timedelta(seconds=int(seconds))
            return cls(
                follow=query.get("follow") in _TRUE,
                previous=query.get("previous") in _TRUE,
                timestamps=query.get("timestamps") in _TRUE,
                tail_lines=_number(query.get("tailLines")),
                since=since,
                limit_bytes=_number(query.get("limitBytes")),
            )
        except (ValueError, OverflowError) as error:
            raise errors.BadRequest(f"invalid log options: {error}") from None


def _number(text: str | None) -> int | None:
    """None for no bound; so is a negative number."""
    found = int(text) if text else None
    return found if found is None or found >= 0 else None


def files_of(path: str) -> list[Path]:
    """The log's files that are there, the oldest first."""
    log = Path(path)
    try:
        names = os.listdir(log.parent)
    except OSError:
        return []
    rotated = sorted(log.parent / name for name in names if name.startswith(f"{log.name}.2"))
    return [*rotated, *([log] if log.name in names else [])]


def tail_start(data: bytes | mmap.mmap, lines: int) -> tuple[int, int]:
    """Where the last lines of a file begin, and how many of them are not in it."""
    at = len(data)
    if lines <= 0:
        return at, 0
    end = at - 1 if at and data[at - 1 : at] == b"\n" else at
    while lines > 0:
        at = data.rfind(b"\n", 0, end)
        lines -= 1 if end > 0 else 0
        if at < 0:
            return 0, lines
        end = at
    return at + 1, 0


@dataclass
class _Open:
    fd: int
    inode: int


class LogReader:
    """Reads one log, piece by piece. Close it."""

    def __init__(self, path: str, options: LogOptions) -> None:
        self._path = path
        self._options = options
        self._rest = b""  # of a line that is not complete
        self._inside = False  # whether the last text had no line's end
        self._left = options.limit_bytes
        since = options.since
        self._since = _stamp(since) if since is not None else b""
        self._waiting: list[Path] = []
        self._file: _Open | None = None
        self._begin()

    def _begin(self) -> None:
        files = files_of(self._path)
        lines, offset = self._options.tail_lines, 0
        if lines is not None:
            wanted: list[Path] = []
            for file in reversed(files):
                offset, lines = _tail_of(file, lines)
                wanted.insert(0, file)
                if lines == 0:
                    break
            files = wanted
        self._waiting = files
        if self._next() and self._file is not None:
            os.lseek(self._file.fd, offset, os.SEEK_SET)

    def _next(self) -> bool:
        """Open the next file; False when there is none."""
        while self._waiting:
            path = self._waiting.pop(0)
            try:
                fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
            except OSError:
                continue  # rotation deleted it
            self.close()
            self._file = _Open(fd, os.fstat(fd).st_ino)
            return True
        return False

    @property
    def full(self) -> bool:
        """Whether as much was read as was wanted."""
        return self._left is not None and self._left <= 0

    def read(self) -> bytes:
        """The next piece; empty when there is nothing more at the moment."""
        while not self.full:
            data = os.read(self._file.fd, _CHUNK) if self._file else b""
            if data:
                out = self._lines(data)
                if out:
                    return out
            elif not self._next() and not self._rotated():
                return b""
        return b""

    def _rotated(self) -> bool:
        """Whether there are newer files than the one that is read."""
        files = files_of(self._path)
        if self._file is None:
            self._waiting = files
            return self._next()
        inodes = [_inode(file) for file in files]
        if self._file.inode not in inodes:
            newer = files
        else:
            newer = files[inodes.index(self._file.inode) + 1 :]
        if not newer:
            return False
        # It may have grown between the last read and its rotation.
        data = os.read(self._file.fd, _CHUNK)
        if data:
            os.lseek(self._file.fd, -len(data), os.SEEK_CUR)
            return True
        self._waiting = newer
        return self._next()

    def _lines(self, data: bytes) -> bytes:
        data = self._rest + data
        whole, newline, self._rest = data.rpartition(b"\n")
        if not newline:
            return b""
        out = b"".join(self._text(line) for line in whole.split(b"\n"))
        if self._left is not None:
            out = out[: self._left]
            self._left -= len(out)
        return out

    def _text(self, line: bytes) -> bytes:
        words = line.split(b" ", _WORDS - 1)
        if len(words) < _WORDS:
            return b""
        stamp, _, tag, text = words
        if self._since and stamp < self._since:
            return b""
        prefix = stamp + b" " if self._options.timestamps and not self._inside else b""
        self._inside = tag.split(b":")[0] == b"P"
        return prefix + text + (b"" if self._inside else b"\n")

    def close(self) -> None:
        """Give the file back; may be called twice."""
        if self._file is not None:
            os.close(self._file.fd)
        self._file = None


def _tail_of(file: Path, lines: int) -> tuple[int, int]:
    try:
        with file.open("rb") as opened, mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ) as m:
            return tail_start(m, lines)
    except (OSError, ValueError):  # gone, or empty
        return 0, lines


def _inode(file: Path) -> int:
    try:
        return file.stat().st_ino
    except OSError:
        return -1


def _stamp(moment: datetime) -> bytes:
    """A time as the log has it: in one zone and of one length, it sorts as text."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%f000Z").encode()
