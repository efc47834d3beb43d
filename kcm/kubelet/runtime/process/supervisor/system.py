"""Calls functions of the C library. Each does nothing on systems that lack it."""

from __future__ import annotations

import ctypes
import sys

TYPE_CHECKING = False  # importing typing would take a megabyte
if TYPE_CHECKING:
    from collections.abc import Callable

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
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
