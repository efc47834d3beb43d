"""Notes in one process when something happened, and reads it in another.

Each stamp takes about a microsecond: it appends 8 bytes to a file, the time of the monotonic
clock that all processes of a machine share.
"""

from __future__ import annotations

import os
import struct
import time
from pathlib import Path

STAMP_FILE = "KCM_BENCH_STAMPS"  # names the file in the environment of those who stamp
_ENTRY = struct.Struct("d")


class StampWriter:
    """Appends stamps. The first one opens the file, after any fork."""

    def __init__(self) -> None:
        self._file = -1

    def __call__(self) -> None:
        if self._file < 0:
            path = os.environ.get(STAMP_FILE, os.devnull)
            self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        os.write(self._file, _ENTRY.pack(time.monotonic()))


class StampReader:
    """Reads what was stamped since `reset`."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.touch(mode=0o600)
        self._start = 0

    def reset(self) -> None:
        """Forgets what was stamped so far."""
        self._start = self.path.stat().st_size

    def count(self) -> int:
        return (self.path.stat().st_size - self._start) // _ENTRY.size

    def times(self) -> list[float]:
        """Returns monotonic seconds, in the order of writing."""
        data = self.path.read_bytes()[self._start :]
        return [moment for (moment,) in _ENTRY.iter_unpack(data)]
