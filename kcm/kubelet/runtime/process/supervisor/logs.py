"""Writes a container's output in CRI's format: `<RFC3339Nano> stdout F text`.

Guarantees: lines keep the order of their stream. A line of more than 16 KiB is split (P for a part,
F for the last one), which bounds the memory. A file is rotated between lines, and at most
`max_files` are kept, the current one included.

Source: containerd internal/cri/io/logger.go and pkg/kubelet/logs/container_log_manager.go (names of
rotated files), Kubernetes 1.33. Departure: rotated files are not compressed.
"""

from __future__ import annotations

import os
import time

LINE = 16 * 1024  # bytes of a part; reads are smaller, so only their first line can be longer


def timestamp(nanoseconds: int) -> bytes:
    """Returns a time in RFC 3339, in UTC and with nine digits for the fraction of the second."""
    seconds, fraction = divmod(nanoseconds, 10**9)
    return time.strftime(f"%Y-%m-%dT%H:%M:%S.{fraction:09d}Z", time.gmtime(seconds)).encode()


class LogFile:
    """A log file with rotation. Without a path, nothing is written."""

    def __init__(self, path: str, max_size: int, max_files: int) -> None:
        self._path = path
        self._max_size = max_size
        self._max_files = max_files
        self._fd = -1
        self._size = 0
        self.reopen()

    def reopen(self) -> None:
        """Opens the file at the path, creating it if there is none."""
        self.close()
        if self._path:
            flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
            self._fd = os.open(self._path, flags, 0o640)
            self._size = os.fstat(self._fd).st_size

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
        self._fd = -1

    def write(self, lines: bytes) -> bytes:
        """Appends lines.

        Returns those that were not written because of an error, as on a full disk.
        """
        if not self._path:
            return b""
        try:
            if self._fd < 0:
                self.reopen()
            while lines:
                fitting = self._take_fitting(lines)
                if not fitting:
                    self._rotate()
                    continue
                written = os.write(self._fd, fitting)
                self._size += written
                lines = lines[written:]
        except OSError:
            return lines
        return b""

    def _take_fitting(self, lines: bytes) -> bytes:
        """Returns the lines that still fit into the file, at least one if the file is empty."""
        room = self._max_size - self._size
        if self._max_size <= 0 or len(lines) <= room:
            return lines
        end = lines.rfind(b"\n", 0, max(room, 0)) + 1
        return lines[: end or (0 if self._size else lines.find(b"\n") + 1)]

    def _rotate(self) -> None:
        name = time.strftime(f"{self._path}.%Y%m%d-%H%M%S", time.gmtime())
        rotated = self.list_rotated()
        if name in rotated or any(old.startswith(name) for old in rotated):
            name = f"{name}.{time.time_ns() % 10**9:09d}"
        for old in rotated[: max(len(rotated) - self._max_files + 2, 0)]:
            os.unlink(old)
        # If somebody has moved the file away, it is rotated already.
        if os.path.exists(self._path):
            if self._max_files > 1:
                os.rename(self._path, name)
            else:
                os.unlink(self._path)
        self.reopen()

    def list_rotated(self) -> list[str]:
        """Returns the rotated files, the oldest first."""
        folder, _, name = self._path.rpartition("/")
        names = [entry for entry in os.listdir(folder or ".") if entry.startswith(f"{name}.2")]
        return [f"{folder}/{entry}" if folder else entry for entry in sorted(names)]


class Lines:
    """Splits one stream into log lines."""

    def __init__(self, stream: bytes) -> None:
        self._stream = stream
        self._rest = b""  # an incomplete line, shorter than LINE

    def feed(self, data: bytes, now: int) -> bytes:
        """Returns the log lines that these bytes complete, each with at most LINE bytes of text.

        `now` is in nanoseconds since 1970.
        """
        stamp = timestamp(now)
        full, part = (b"%s %s %s " % (stamp, self._stream, tag) for tag in (b"F", b"P"))
        data = self._rest + data
        out: list[bytes] = []
        while len(data) > LINE and data.find(b"\n", 0, LINE + 1) < 0:
            out.append(part + data[:LINE] + b"\n")
            data = data[LINE:]
        end = data.rfind(b"\n")
        if end >= 0:
            out.append(full + data[:end].replace(b"\n", b"\n" + full) + b"\n")
            data = data[end + 1 :]
        while len(data) >= LINE:
            out.append(part + data[:LINE] + b"\n")
            data = data[LINE:]
        self._rest = data
        return b"".join(out)

    def finish(self, now: int) -> bytes:
        """Returns the last line if the stream has ended without a line feed, else b""."""
        return self.feed(b"\n", now) if self._rest else b""
