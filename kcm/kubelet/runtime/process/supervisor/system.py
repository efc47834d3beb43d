"""Calls functions of the C library. Each does nothing on systems that lack it."""

from __future__ import annotations

import ctypes
import sys

TYPE_CHECKING = False  # importing typing would take a megabyte
if TYPE_CHECKING:
    from collections.abc import Callable

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_MADV_DONTNEED = 4
_SIGKILL = 9
Word = ctypes.c_void_p  # a pointer or a size; plain numbers would be passed as a C int


def function(name: str) -> Callable[..., object]:
    """Returns a function of the C library."""
    called: Callable[..., object] = getattr(ctypes.CDLL(None), name)
    return called


def become_subreaper() -> None:
    """Makes this process adopt the orphans among its descendants, also those of double forks."""
    if sys.platform == "linux":
        function("prctl")(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def die_with_parent() -> None:
    """Makes the kernel kill this process when its parent, the supervisor, dies."""
    if sys.platform == "linux":
        function("prctl")(_PR_SET_PDEATHSIG, _SIGKILL, 0, 0, 0)


def give_back_pages() -> None:
    """Unmaps the pages of programs and libraries that only starting up has needed.

    They are clean copies of files, shared with every other Python, and are mapped again on access.
    Starting touches 6 MB of them, running needs 2.
    """
    if sys.platform != "linux":
        return
    madvise = function("madvise")
    for start, end in _clean_mappings():
        madvise(Word(start), Word(end - start), _MADV_DONTNEED)


def _clean_mappings() -> list[tuple[int, int]]:
    mappings: list[tuple[int, int]] = []
    bounds = (0, 0)
    with open("/proc/self/smaps", encoding="ascii", errors="replace") as file:
        for line in file:
            words = line.split()
            if "-" in words[0] and not words[0].endswith(":"):
                low, high = words[0].split("-")
                wanted = len(words) > 5 and words[5][0] == "/" and words[1] in ("r-xp", "r--p")
                bounds = (int(low, 16), int(high, 16)) if wanted else (0, 0)
            # Relocated constants are private copies: those would be lost.
            elif words[0] == "Anonymous:" and words[1] == "0" and bounds[1]:
                mappings.append(bounds)
    return mappings
