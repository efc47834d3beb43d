"""Makes mounts read-only for a container, by bind mounts in a mount namespace."""

from __future__ import annotations

import os
import sys

from kcm.kubelet.runtime.process.supervisor.system import Word, function

# From linux/mount.h and linux/sched.h.
_NEW_NAMESPACE = 0x20000
_READ_ONLY, _REMOUNT, _BIND, _REC, _SLAVE = 1, 1 << 5, 1 << 12, 1 << 14, 1 << 19
_KEPT = 2 | 4 | 8  # nosuid, nodev, noexec: a remount would drop them


def make_read_only(paths: list[str]) -> None:
    """Makes the paths read-only for this process and its children, but not mounts below them.

    Does nothing where mount namespaces are not allowed. Raises OSError if a path does not exist or
    cannot be mounted.
    """
    if not paths or sys.platform != "linux" or function("unshare")(_NEW_NAMESPACE):
        return
    _mount(None, b"/", _REC | _SLAVE)  # the machine's later mounts appear here, but not the reverse
    for path in paths:
        kept, encoded = os.statvfs(path).f_flag & _KEPT, os.fsencode(path)
        _mount(encoded, encoded, _BIND | _REC)
        _mount(None, encoded, _BIND | _REMOUNT | _READ_ONLY | kept)


def _mount(source: bytes | None, target: bytes, flags: int) -> None:
    if function("mount")(source, target, None, Word(flags), None):
        raise OSError(f"{os.fsdecode(target)} could not be mounted read-only")
