"""Keeps the memory of a process small that serves clients who may be hostile.

Python collects garbage by the number of objects, and a few objects may hold many bytes. So a
collection is also due when the process has grown. It leaves out the objects that are older than the
last collections: to look at what remains takes some 6 ms, besides what is freed. And the C library
keeps what was freed, so that a server would show the memory of its worst minute from then on: it is
asked to give that back, in a thread, some 7 ms of its lock for each 100 MiB that it gives back.

On systems without glibc, or without /proc, the one or the other does not happen.
"""

from __future__ import annotations

import ctypes
import gc
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path

GROWTH = 32 * 1024 * 1024  # bytes that call for a collection, and then for giving back
TRIM_EVERY = 20.0  # seconds
_TRIES = 3  # what is in use now may be free at the next try
_WORTH_IT = 8 * 1024 * 1024  # bytes given back that promise more
_STATM = Path("/proc/self/statm")
_PAGE = os.sysconf("SC_PAGE_SIZE")


def read_resident_bytes() -> int:
    """Returns how much memory this process occupies, 0 where that cannot be read."""
    try:
        return int(_STATM.read_bytes().split()[1]) * _PAGE
    except (OSError, ValueError, IndexError):
        return 0


def collect_young() -> None:
    """Collects the garbage among the objects that are not old."""
    gc.collect(1)


def trim_soon() -> None:
    """Gives freed memory back to the system, in a thread."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        threading.Thread(target=trim, args=(0,), name="kcm-trim", daemon=True).start()


class MemoryKeeper:
    """Decides when to collect and when to give back. `look` has to be called about every second."""

    def __init__(
        self,
        resident: Callable[[], int] = read_resident_bytes,
        collect: Callable[[], None] = collect_young,
        trim: Callable[[], None] = trim_soon,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._resident = resident
        self._collect = collect
        self._trim = trim
        self._now = now
        self._collected_at = self._trimmed_at = resident()  # bytes
        self._next_trim = now() + TRIM_EVERY
        self._tries = 0

    def look(self) -> None:
        """Collects if the process has grown, and gives back what it had and no longer uses."""
        size = self._resident()
        self._collected_at = min(self._collected_at, size)
        if size - self._collected_at >= GROWTH:
            self._tries = _TRIES
            self._collect()
            self._collected_at = self._resident()
        if self._tries and self._now() >= self._next_trim:
            if self._trimmed_at - size >= _WORTH_IT:
                self._tries = _TRIES
            self._tries -= 1
            self._trimmed_at = size
            self._next_trim = self._now() + TRIM_EVERY
            self._trim()
