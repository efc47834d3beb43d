"""Reads the output of a container from log files in CRI's format.

Guarantees: rotated files are read, the oldest first. A file that is rotated while it is followed is
read to its end. Does not guarantee lines that rotation deleted before they were read.

Source: pkg/kubelet/kuberuntime/logs/logs.go, Kubernetes 1.33. Departure: the tail may include lines
of rotated files.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from kcm import errors
from kcm.apimachinery.meta_v1 import parse_time
from kcm.kubelet.server.queries import is_true

_CHUNK = 256 * 1024  # bytes read at once
_BLOCK = 64 * 1024  # bytes read at once backwards
_LONGEST = 128 * 1024  # bytes of a line; supervisors write lines of about 16 KiB at most
_CHUNKS = 16  # how many chunks one call of `read` searches
_WORDS = 4  # time, stream, tag, text


@dataclass(frozen=True)
class LogOptions:
    """The part of a log that the client requests."""

    follow: bool = False
    previous: bool = False
    timestamps: bool = False
    tail_lines: int | None = None
    since: datetime | None = None
    limit_bytes: int | None = None

    @classmethod
    def of(cls, query: Mapping[str, str], now: datetime) -> LogOptions:
        """Parses the query of a request. Raises BadRequest."""
        try:
            seconds, moment = query.get("sinceSeconds"), query.get("sinceTime")
            since = parse_time(moment) if moment else None
            if seconds:
                since = now - timedelta(seconds=int(seconds))
            return cls(
                follow=is_true(query, "follow"),
                previous=is_true(query, "previous"),
                timestamps=is_true(query, "timestamps"),
                tail_lines=_number(query.get("tailLines")),
                since=since,
                limit_bytes=_number(query.get("limitBytes")),
            )
        except (ValueError, OverflowError) as error:
            raise errors.BadRequest(f"invalid log options: {error}") from None


def _number(text: str | None) -> int | None:
    """Returns the number in the text.

    Returns None, for no bound, without one or if it is negative.
    """
    number = int(text) if text else None
    return number if number is None or number >= 0 else None


def files_of(path: str) -> list[Path]:
    """Returns the existing files of the log at `path`, the oldest first."""
    log = Path(path)
    try:
        names = os.listdir(log.parent)
    except OSError:
        return []
    rotated = sorted(log.parent / name for name in names if name.startswith(f"{log.name}.2"))
    return [*rotated, *([log] if log.name in names else [])]


def tail_start(fd: int, lines: int) -> tuple[int, int]:
    """Returns where the last lines of a file begin, and how many of the lines the file lacks.

    Reads backwards, at most these lines and _LONGEST bytes. If that many bytes contain no line's
    end, they are no log, and what is before them is not searched.
    """
    at = end = os.fstat(fd).st_size
    if lines <= 0 or not end:
        return end, lines
    begins = end  # where the earliest of the wanted lines begins
    while at > 0 and begins - at < _LONGEST:
        start = max(at - _BLOCK, 0)
        data = os.pread(fd, at - start, start)
        for offset in _line_ends(data):
            if start + offset == end - 1:
                continue  # no line begins after the end of the last one
            begins = start + offset + 1
            lines -= 1
            if not lines:
                return begins, 0
        at = start
    return at, 0 if at else lines - 1


def _line_ends(data: bytes) -> Iterator[int]:
    """Yields the positions of the line ends, the last one first."""
    at = data.rfind(b"\n")
    while at >= 0:
        yield at
        at = data.rfind(b"\n", 0, at)


@dataclass
class _OpenLog:
    """An open file of the log."""

    fd: int
    inode: int


class LogReader:
    """Reads one log, piece by piece. Call `close` at the end."""

    def __init__(self, path: str, options: LogOptions) -> None:
        self._path = path
        self._options = options
        self._rest = b""  # the beginning of a line that is not complete
        self._drops = False  # whether the rest of an overlong line is being dropped
        self.behind = False  # whether `read` returned nothing although there may be more
        self._inside = False  # whether the last text was a part of a line
        self._left = options.limit_bytes
        since = options.since
        self._since = _stamp(since) if since is not None else b""
        self._waiting: list[Path] = []
        self._file: _OpenLog | None = None
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
        """Opens the next file; returns False if there is none."""
        while self._waiting:
            path = self._waiting.pop(0)
            try:
                fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
            except OSError:
                continue  # rotation has deleted it
            self.close()
            self._file = _OpenLog(fd, os.fstat(fd).st_ino)
            return True
        return False

    @property
    def full(self) -> bool:
        """Whether `limit_bytes` bytes were read."""
        return self._left is not None and self._left <= 0

    def read(self) -> bytes:
        """Returns the next piece of the log, in the form that the client requested.

        It is empty if there is nothing more at the moment. It is also empty if nothing matches in
        as much as one call searches; then `behind` is set.
        """
        self.behind = False
        for _ in range(_CHUNKS):
            if self.full:
                return b""
            data = self._piece()
            if data:
                out = self._lines(data)
                if out:
                    return out
            elif not self._next() and not self._has_newer():
                return b""
        self.behind = True
        return b""

    def _piece(self) -> bytes:
        """Returns the next bytes of the file. Skips holes of sparse files."""
        if self._file is None:
            return b""
        fd = self._file.fd
        at, size = os.lseek(fd, 0, os.SEEK_CUR), os.fstat(fd).st_size
        if at < size:
            try:
                os.lseek(fd, at, os.SEEK_DATA)
            except OSError:  # there is a hole up to `size`; newer data is behind it
                os.lseek(fd, size, os.SEEK_SET)
        return os.read(fd, _CHUNK)

    def _has_newer(self) -> bool:
        """Opens the file that follows the present one, if there is one.

        Reports whether there is more to read, in that file or in the present one.
        """
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
        # The present file may have grown between the last read and its rotation.
        data = os.read(self._file.fd, _CHUNK)
        if data:
            os.lseek(self._file.fd, -len(data), os.SEEK_CUR)
            return True
        self._waiting = newer
        return self._next()

    def _lines(self, data: bytes) -> bytes:
        data = self._rest + data
        whole, newline, self._rest = data.rpartition(b"\n")
        if len(self._rest) > _LONGEST:
            self._rest, cut = b"", True
        else:
            cut = False
        if newline and self._drops:
            whole, self._drops = whole.partition(b"\n")[2], False
        self._drops = self._drops or cut
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
        """Closes the file. May be called twice."""
        if self._file is not None:
            os.close(self._file.fd)
        self._file = None


def _tail_of(file: Path, lines: int) -> tuple[int, int]:
    try:
        with file.open("rb") as opened:
            return tail_start(opened.fileno(), lines)
    except OSError:  # gone
        return 0, lines


def _inode(file: Path) -> int:
    try:
        return file.stat().st_ino
    except OSError:
        return -1


def _stamp(moment: datetime) -> bytes:
    """Returns a time in the format of the log, which has a fixed length and sorts as text."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%f000Z").encode()
