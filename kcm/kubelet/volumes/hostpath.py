"""hostPath volumes: only below the folders that the node's owner listed.

Source: pkg/volume/hostpath/host_path.go (the types and their checks), Kubernetes 1.33.
Departure: upstream allows every path; here none is allowed by default.
"""

from __future__ import annotations

import stat
from collections.abc import Callable, Sequence
from pathlib import Path

from kcm.errors import ContainerConfigError

_CHECKS: dict[str, tuple[Callable[[int], bool], str]] = {
    "Directory": (stat.S_ISDIR, "directory"),
    "DirectoryOrCreate": (stat.S_ISDIR, "directory"),
    "File": (stat.S_ISREG, "file"),
    "FileOrCreate": (stat.S_ISREG, "file"),
    "Socket": (stat.S_ISSOCK, "socket file"),
    "CharDevice": (stat.S_ISCHR, "character device"),
    "BlockDevice": (stat.S_ISBLK, "block device"),
}


def host_path(path: str, kind: str, allowed: Sequence[Path]) -> Path:
    """The path, checked, and made where its type says so.

    Links are followed before the prefixes are compared, so that none leads out of
    them. Raises ContainerConfigError.
    """
    real = Path(path).resolve()
    if not Path(path).is_absolute() or not any(
        real.is_relative_to(prefix.resolve()) for prefix in allowed
    ):
        raise ContainerConfigError(
            f"hostPath {path} is not allowed on this node (--allowed-host-paths)"
        )
    if kind == "DirectoryOrCreate" and not real.exists():
        real.mkdir(mode=0o755, parents=True)
    if kind == "FileOrCreate" and not real.exists():
        real.touch(mode=0o644)
    if kind:
        _check(real, path, kind)
    return real


def _check(real: Path, path: str, kind: str) -> None:
    if kind not in _CHECKS:
        raise ContainerConfigError(f"unknown type {kind} of hostPath {path}")
    is_kind, words = _CHECKS[kind]
    if not real.exists() or not is_kind(real.stat().st_mode):
        raise ContainerConfigError(f"hostPath type check failed: {path} is not a {words}")
