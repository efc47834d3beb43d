"""Opens and creates files below a folder whose content others may change, and never outside of it.

Guarantees: nothing is opened, created or changed outside of the root folder, even if others replace
parts of the path by links meanwhile. Each step starts from the descriptor of the folder before it,
and a link on the way is an error. Where a file or folder is created, links that stay below the root
are resolved once, before that. Only the kubelet's user may be able to change the root's own path.

Source: doSafeOpen and doSafeMakeDir in pkg/volume/util/subpath/subpath_linux.go, Kubernetes 1.33.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from kcm.errors import ContainerConfigError

_STEP = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_LOOK = os.O_NOFOLLOW | os.O_CLOEXEC | getattr(os, "O_PATH", 0)  # O_PATH is Linux's
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class LedOut(ContainerConfigError):  # noqa: N818 - as its siblings in kcm.errors
    """The path leads out of its root, or was changed by others during the access."""


def open_file(root: Path, path: str) -> int:
    """Opens the regular file at `path` below `root` for reading; returns its file descriptor.

    Follows no link. Raises LedOut and OSError; FileNotFoundError for anything but a regular file.
    """
    top, names = os.path.realpath(root), os.path.normpath(path).split("/")
    if ".." in names or path.startswith("/"):
        raise LedOut(f"{path} leads out of {root}")
    with _parent(top, names) as (folder, name):
        file = os.open(name, _READ, dir_fd=folder)
    if not stat.S_ISREG(os.fstat(file).st_mode):
        os.close(file)
        raise FileNotFoundError(f"{path} is not a regular file")
    return file


def open_path(root: Path, path: str) -> int:
    """Opens the file or folder at `path` below `root` for mounting; returns its file descriptor.

    Links that stay below the root are resolved once, before that. Raises LedOut and OSError.
    """
    with _parent(*_real(root, path)) as (folder, name):
        opened = os.open(name or ".", _LOOK, dir_fd=folder)
    if stat.S_ISLNK(os.fstat(opened).st_mode):
        os.close(opened)
        raise LedOut(f"{path} was replaced by a link meanwhile")
    return opened


def make_folder(root: Path, path: str, mode: int | None = None) -> None:
    """Creates the missing folders of `path` below `root`; existing ones are not changed.

    New folders have the owner of the folder that they are in, and `mode`; if that is None, they
    have that folder's mode. Raises LedOut and OSError.
    """
    with _parent(*_real(root, path), mode, makes=True) as (folder, name):
        if name and not _exists(folder, name):
            os.close(_make(folder, name, mode))


def make_file(root: Path, path: str, mode: int) -> None:
    """Creates an empty file at `path` below `root`, in an existing folder, unless it exists.

    Raises LedOut and OSError.
    """
    with _parent(*_real(root, path)) as (folder, name):
        if not _exists(folder, name):
            made = os.open(name, _NEW, mode, dir_fd=folder)
            os.fchmod(made, mode)
            os.close(made)


def hand_over(root: Path, uid: int, gid: int) -> None:
    """Makes a user the owner of a folder and of its subfolders, but not of the files in them.

    Only safe before others can change the folder. Raises OSError.
    """
    for _, _, _, folder in os.fwalk(root, topdown=False):
        os.fchown(folder, uid, gid)


def hand_over_file(root: Path, name: str, uid: int, gid: int) -> None:
    """Makes a user the owner of a file of ours, in a folder that only we can change.

    Raises LedOut if the file belongs to another user, and OSError.
    """
    file = open_file(root, name)
    try:
        if os.fstat(file).st_uid not in (os.geteuid(), uid):
            raise LedOut(f"{root / name} belongs to another user")
        os.fchown(file, uid, gid)
    finally:
        os.close(file)


@contextmanager
def _parent(
    top: str, names: Sequence[str], mode: int | None = None, *, makes: bool = False
) -> Iterator[tuple[int, str]]:
    """Opens the folder of the path's last name; yields its descriptor and that name.

    Without names, these are the root and "". With `makes`, missing folders are created with `mode`.
    """
    folder = os.open(top, _STEP)
    try:
        for name in names[:-1]:
            below = _step(folder, name, mode, makes=makes)
            os.close(folder)
            folder = below
        yield folder, names[-1] if names else ""
    finally:
        os.close(folder)


def _real(root: Path, path: str) -> tuple[str, list[str]]:
    """Returns the root, and the names of the path below it, with all links resolved.

    Raises LedOut if the path leads out of the root.
    """
    top = os.path.realpath(root)
    real = os.path.realpath(os.path.join(top, path.lstrip("/")))
    if real != top and not real.startswith(top.rstrip("/") + "/"):
        raise LedOut(f"{path} leads out of {root}")
    return top, [name for name in real[len(top) :].split("/") if name]


def _step(folder: int, name: str, mode: int | None, *, makes: bool) -> int:
    if makes and not _exists(folder, name):
        return _make(folder, name, mode)
    return os.open(name, _STEP, dir_fd=folder)


def _exists(folder: int, name: str) -> bool:
    """Reports whether the name exists. Raises LedOut for a link, as all were resolved before."""
    try:
        status = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return False
    if stat.S_ISLNK(status.st_mode):
        raise LedOut(f"{name} was replaced by a link meanwhile")
    return True


def _make(folder: int, name: str, mode: int | None) -> int:
    os.mkdir(name, 0o700, dir_fd=folder)
    made = os.open(name, _STEP, dir_fd=folder)
    try:
        own, above = os.fstat(made), os.fstat(folder)
        # Another folder may have its name by now. Any empty folder of ours will do.
        if own.st_uid != os.geteuid() or os.listdir(made):
            raise LedOut(f"{name} was replaced by another folder meanwhile")
        if (own.st_uid, own.st_gid) != (above.st_uid, above.st_gid) and os.geteuid() == 0:
            os.fchown(made, above.st_uid, above.st_gid)
        os.fchmod(made, above.st_mode & 0o777 if mode is None else mode)
    except BaseException:  # it is raised again; the descriptor has no other owner yet
        os.close(made)
        raise
    return made
