"""Makes and undoes mounts on this machine, for the volumes of containers. Linux only; needs root.

Guarantees: what is bound is a descriptor, so nobody can replace it by a link meanwhile. A mount
that is undone goes at once for whoever looks later, and stays for who has it open. Undoing what was
bound undoes nothing where it was bound from.
"""

from __future__ import annotations

import ctypes
import os
import re
from functools import cache
from pathlib import Path

# From linux/mount.h.
_BIND, _REC, _SLAVE = 1 << 12, 1 << 14, 1 << 19
_DETACH, _NO_FOLLOW = 2, 8
_NO_SET_UID, _NO_DEVICES = 2, 4
_ESCAPED = re.compile(r"\\([0-7]{3})")
_INFO = Path("/proc/self/mountinfo")


@cache
def _library() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def mount_memory(folder: Path, size: int) -> None:
    """Mounts a file system in memory that everybody may write to, of `size` bytes at most.

    Raises OSError.
    """
    options = f"mode=777,size={size}".encode()
    _mount(b"tmpfs", folder, b"tmpfs", _NO_SET_UID | _NO_DEVICES, options)


def bind(descriptor: int, target: Path) -> None:
    """Shows an open file or folder, with what is mounted below it, at `target`. Raises OSError."""
    _mount(f"/proc/self/fd/{descriptor}".encode(), target, None, _BIND | _REC, None)
    # A shared mount tells its origin when something below it is unmounted; a slave does not.
    _mount(b"none", target, None, _SLAVE | _REC, None)


def _mount(
    source: bytes, target: Path, kind: bytes | None, flags: int, options: bytes | None
) -> None:
    arguments = (source, os.fsencode(target), kind, ctypes.c_ulong(flags), options)
    if _library().mount(*arguments):
        _raise(target)


def unmount(target: Path) -> None:
    """Undoes the newest mount at `target`. Raises OSError."""
    if _library().umount2(os.fsencode(target), _DETACH | _NO_FOLLOW):
        _raise(target)


def unmount_all(folder: Path) -> None:
    """Undoes all mounts at the folder and below it. Raises OSError if one cannot be undone."""
    for path in reversed(list_mounts(folder)):
        unmount(path)


def list_mounts(folder: Path) -> list[Path]:
    """Returns the mount points at the folder and below it, in the order in which they were made."""
    try:
        lines = _INFO.read_text("utf-8", "surrogateescape").splitlines()
    except OSError:
        return []  # there are none where there is no such file
    top = folder.resolve()
    points = [Path(_ESCAPED.sub(_unescape, line.split(" ")[4])) for line in lines]
    return [point for point in points if point.is_relative_to(top)]


def _unescape(match: re.Match[str]) -> str:
    return chr(int(match[1], 8))


def _raise(path: Path) -> None:
    number = ctypes.get_errno()
    raise OSError(number, os.strerror(number), str(path))
