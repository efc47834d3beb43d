"""Records times in one process, and reads them in another.

Each stamp takes about a microsecond: it appends 8 bytes to a file, the time of the monotonic clock
that all processes of a machine share.
"""

from __future__ import annotations

import os
import struct
import time
from pathlib import Path

STAMP_FILE = "KCM_BENCH_STAMPS"  # the environment variable with the path of the stamp file
_ENTRY = struct.Struct("d")


class StampWriter:
    """Appends stamps to the stamp file. The first call opens it, so that each fork has its own."""

    def __init__(self) -> None:
        self._file = -1

    def __call__(self) -> None:
        if self._file < 0:
            path = os.environ.get(STAMP_FILE, os.devnull)
            self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        os.write(self._file, _ENTRY.pack(time.monotonic()))


class StampReader:
    """Reads the stamps that were written since `reset`."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.touch(mode=0o600)
        self._start = 0

    def reset(self) -> None:
        """Ignores the stamps that were written so far."""
        self._start = self.path.stat().st_size

    def count(self) -> int:
        return (self.path.stat().st_size - self._start) // _ENTRY.size

    def times(self) -> list[float]:
        """Returns the stamps, in monotonic seconds and in the order of writing."""
        data = self.path.read_bytes()[self._start :]
        return [moment for (moment,) in _ENTRY.iter_unpack(data)]
