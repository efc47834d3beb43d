"""Gives a volume to the fsGroup of its pod.

Guarantees: nothing outside of the volume is changed, even if somebody else writes to the volume
meanwhile: links are not followed, and each file is changed by its descriptor.

Source: pkg/volume/volume_linux.go, Kubernetes 1.36.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

from kcm.api.core_v1 import Pod
from kcm.kubelet.environment.payloads import find_group

_READ_WRITE, _SEARCH = 0o660, 0o110
_ON_MISMATCH = "OnRootMismatch"
_LOOK = os.O_NOFOLLOW | os.O_CLOEXEC | getattr(os, "O_PATH", 0)  # O_PATH is Linux's


def give_volume(folder: Path, pod: Pod) -> None:
    """Gives a volume, and all that is in it, to the pod's fsGroup, if there is one.

    With the policy OnRootMismatch it does nothing if the folder itself has the group already.
    Raises OSError.
    """
    group = find_group(pod)
    if group is None:
        return
    context = pod.spec.security_context
    policy = context.fs_group_change_policy if context is not None else None
    if policy == _ON_MISMATCH and _is_given(folder, group):
        return
    for _, folders, files, descriptor in os.fwalk(folder):
        for name in (*folders, *files):
            _give(name, group, descriptor)
    # The folder itself comes last: it says that the rest is done.
    _give(str(folder), group, None)


def _is_given(folder: Path, group: int) -> bool:
    status, wanted = folder.stat(), _READ_WRITE | _SEARCH | stat.S_ISGID
    return status.st_gid == group and status.st_mode & wanted == wanted


def _give(name: str, group: int, folder: int | None) -> None:
    try:
        descriptor = os.open(name, _LOOK, dir_fd=folder)
    except FileNotFoundError:
        return  # somebody has removed it meanwhile
    try:
        opened = f"/proc/self/fd/{descriptor}"  # leads to what was opened, a link included
        os.chown(opened, -1, group)
        mode = os.fstat(descriptor).st_mode
        if stat.S_ISLNK(mode):
            return
        wanted = stat.S_IMODE(mode) | _READ_WRITE
        if stat.S_ISDIR(mode):
            wanted |= _SEARCH | stat.S_ISGID
        os.chmod(opened, wanted)
    finally:
        os.close(descriptor)
