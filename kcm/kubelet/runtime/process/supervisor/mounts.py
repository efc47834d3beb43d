"""Makes mounts for a container in a mount namespace: read-only paths, and /run/secrets.

Client libraries read the token of a pod at one absolute path below /var/run/secrets. In the
namespace of a container, /run/secrets is a file system of its own, with nothing but the container's
mounts. The folder itself is the only thing that the machine has to have for that.

Guarantees: nothing outside of a volume is shown, even if others replace parts of a path in it by
links meanwhile. Each step starts from the descriptor of the folder before it, and what is mounted
is a descriptor (`files/beneath.py` has the same for files, with imports that a supervisor avoids).
"""

from __future__ import annotations

import os
import stat
import sys

from kcm.kubelet.runtime.process.supervisor.system import Word, function
from kcm.kubelet.runtime.process.wire import Fields

# From linux/mount.h and linux/sched.h.
_NEW_NAMESPACE = 0x20000
_READ_ONLY, _REMOUNT, _BIND, _REC, _SLAVE = 1, 1 << 5, 1 << 12, 1 << 14, 1 << 19
_KEPT = 2 | 4 | 8  # nosuid, nodev, noexec: a remount would drop them
_STEP = os.O_NOFOLLOW | os.O_CLOEXEC | getattr(os, "O_PATH", 0)  # O_PATH is Linux's
_SECRETS = "/run/secrets"
_SIZE = b"size=64k,mode=0755"


class SecretMount:
    """A mount below /run/secrets: a path of the machine, and the one at which programs look.

    `root` contains `source`, and only the kubelet's user can change its own path.
    """

    def __init__(self, source: str, root: str, target: str, *, read_only: bool) -> None:
        self.source = source
        self.root = root
        self.target = target
        self.read_only = read_only


def secret_mounts_of(launch: Fields) -> list[SecretMount]:
    """Returns the mounts below /run/secrets that the launch record names."""
    names = ("secret_source", "secret_root", "secret_target", "secret_read_only")
    return [
        SecretMount(source, root, target, read_only=read_only == "1")
        for source, root, target, read_only in zip(
            *(launch.get(name, []) for name in names), strict=True
        )
    ]


def set_up_mounts(read_only: list[str], secrets: list[SecretMount]) -> None:
    """Makes paths read-only for this process and its children, but not mounts below them, and shows
    folders below /run/secrets.

    Does nothing where mount namespaces are not allowed. Raises OSError if a path does not exist,
    leads out of its root or cannot be mounted.
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
        _show_secrets(secrets)


def _make_folder() -> bool:
    """Makes the machine's folder if it is missing. Returns False if that is not possible."""
    try:
        os.makedirs(_SECRETS, mode=0o755, exist_ok=True)
    except OSError:
        return False
    return True


def _show_secrets(secrets: list[SecretMount]) -> None:
    target = os.fsencode(_SECRETS)
    if function("mount")(b"tmpfs", target, b"tmpfs", Word(_KEPT), _SIZE):
        raise OSError(f"{_SECRETS} could not be mounted")
    for secret in secrets:
        # Only what is opened in this mount namespace can be mounted here.
        source, path = _open_below(secret.root, secret.source), secret.target
        if stat.S_ISDIR(os.fstat(source).st_mode):
            os.makedirs(path, mode=0o755, exist_ok=True)
        else:
            os.makedirs(os.path.dirname(path), mode=0o755, exist_ok=True)
            os.close(os.open(path, os.O_CREAT | os.O_WRONLY, 0o644))
        _bind(f"/proc/self/fd/{source}", path, read_only=secret.read_only)
        os.close(source)


def _open_below(root: str, path: str) -> int:
    """Opens the file or folder at `path` for mounting; returns its descriptor.

    Links that stay below the root are resolved once; none is followed after that. Raises OSError.
    """
    top, real = os.path.realpath(root), os.path.realpath(path)
    if real != top and not real.startswith(top.rstrip("/") + "/"):
        raise OSError(f"{path} leads out of its volume")
    opened = os.open(top, _STEP)
    for name in filter(None, real[len(top) :].split("/")):
        below = os.open(name, _STEP, dir_fd=opened)
        os.close(opened)
        opened = below
        if stat.S_ISLNK(os.fstat(opened).st_mode):
            raise OSError(f"{path} was replaced by a link meanwhile")
    return opened


def _bind(source: str, target: str, *, read_only: bool) -> None:
    kept, shown = os.statvfs(source).f_flag & _KEPT, os.fsencode(target)
    _mount(os.fsencode(source), shown, _BIND | _REC)
    if read_only:
        _mount(None, shown, _BIND | _REMOUNT | _READ_ONLY | kept)


def _mount(source: bytes | None, target: bytes, flags: int) -> None:
    if function("mount")(source, target, None, Word(flags), None):
        raise OSError(f"{os.fsdecode(target)} could not be mounted")
