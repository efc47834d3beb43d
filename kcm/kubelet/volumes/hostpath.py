"""hostPath volumes, which are allowed only below the folders of --allowed-host-paths.

Source: pkg/volume/hostpath/host_path.go (the types and their checks), Kubernetes 1.33. Departure:
upstream allows every path; here none is allowed by default.
"""

from __future__ import annotations

import stat
from collections.abc import Callable, Sequence
from pathlib import Path

from kcm.errors import ContainerConfigError
from kcm.kubelet.files import beneath

_CHECKS: dict[str, tuple[Callable[[int], bool], str]] = {
    "Directory": (stat.S_ISDIR, "directory"),
    "DirectoryOrCreate": (stat.S_ISDIR, "directory"),
    "File": (stat.S_ISREG, "file"),
    "FileOrCreate": (stat.S_ISREG, "file"),
    "Socket": (stat.S_ISSOCK, "socket file"),
    "CharDevice": (stat.S_ISCHR, "character device"),
    "BlockDevice": (stat.S_ISBLK, "block device"),
}


def host_path(path: str, kind: str, allowed: Sequence[Path]) -> tuple[Path, Path]:
    """Returns a host path with its links resolved, and the allowed folder that contains it.

    Checks the path against the volume's type, after creating it if the type demands that. Raises
    ContainerConfigError if no allowed folder contains it, or if it is not of the type.
    """
    real = Path(path).resolve()
    roots = (prefix.resolve() for prefix in allowed)
    root = next((candidate for candidate in roots if real.is_relative_to(candidate)), None)
    if root is None or not Path(path).is_absolute():
        raise ContainerConfigError(
            f"hostPath {path} is not allowed on this node (--allowed-host-paths)"
        )
    inner = str(real.relative_to(root))
    if kind == "DirectoryOrCreate":
        beneath.make_folder(root, inner, 0o755)
    if kind == "FileOrCreate":
        beneath.make_file(root, inner, 0o644)
    if kind:
        _check(real, path, kind)
    return real, root


def _check(real: Path, path: str, kind: str) -> None:
    if kind not in _CHECKS:
        raise ContainerConfigError(f"unknown type {kind} of hostPath {path}")
    is_kind, words = _CHECKS[kind]
    if not real.exists() or not is_kind(real.stat().st_mode):
        raise ContainerConfigError(f"hostPath type check failed: {path} is not a {words}")
