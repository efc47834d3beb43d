"""Makes mounts for a container in a mount namespace: read-only paths, and /run/secrets.

Client libraries read the token of a pod at one absolute path below /var/run/secrets. In the
namespace of a container, /run/secrets is a file system of its own, with nothing but the container's
mounts. The folder itself is the only thing that the machine has to have for that.
"""

from __future__ import annotations

import os
import sys

from kcm.kubelet.runtime.process.supervisor.system import Word, function

# From linux/mount.h and linux/sched.h.
_NEW_NAMESPACE = 0x20000
_READ_ONLY, _REMOUNT, _BIND, _REC, _SLAVE = 1, 1 << 5, 1 << 12, 1 << 14, 1 << 19
_KEPT = 2 | 4 | 8  # nosuid, nodev, noexec: a remount would drop them
_SECRETS = "/run/secrets"
_SIZE = b"size=64k,mode=0755"


def set_up_mounts(read_only: list[str], secrets: list[tuple[str, str]]) -> None:
    """Makes paths read-only for this process and its children, but not mounts below them, and shows
    folders below /run/secrets.

    `secrets` has pairs of a path of the machine and a path below /run/secrets. Does nothing where
    mount namespaces are not allowed. Raises OSError if a path does not exist or cannot be mounted.
    """
    if not (read_only or secrets) or sys.platform != "linux":
        return
    has_folder = bool(secrets) and _make_folder()
    if function("unshare")(_NEW_NAMESPACE):
        return
    _mount(None, b"/", _REC | _SLAVE)  # the machine's later mounts appear here, but not the reverse
    for path in read_only:
        _bind(path, path, read_only=True)
    if has_folder:
        _show_secrets(secrets, set(read_only))


def _make_folder() -> bool:
    """Makes the machine's folder if it is missing. Returns False if that is not possible."""
    try:
        os.makedirs(_SECRETS, mode=0o755, exist_ok=True)
    except OSError:
        return False
    return True


def _show_secrets(secrets: list[tuple[str, str]], read_only: set[str]) -> None:
    target = os.fsencode(_SECRETS)
    if function("mount")(b"tmpfs", target, b"tmpfs", Word(_KEPT), _SIZE):
        raise OSError(f"{_SECRETS} could not be mounted")
    for source, path in secrets:
        if os.path.isdir(source):
            os.makedirs(path, mode=0o755, exist_ok=True)
        else:
            os.makedirs(os.path.dirname(path), mode=0o755, exist_ok=True)
            os.close(os.open(path, os.O_CREAT | os.O_WRONLY, 0o644))
        _bind(source, path, read_only=os.path.realpath(source) in read_only)


def _bind(source: str, target: str, *, read_only: bool) -> None:
    kept, shown = os.statvfs(source).f_flag & _KEPT, os.fsencode(target)
    _mount(os.fsencode(source), shown, _BIND | _REC)
    if read_only:
        _mount(None, shown, _BIND | _REMOUNT | _READ_ONLY | kept)


def _mount(source: bytes | None, target: bytes, flags: int) -> None:
    if function("mount")(source, target, None, Word(flags), None):
        raise OSError(f"{os.fsdecode(target)} could not be mounted")
