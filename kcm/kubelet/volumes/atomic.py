"""Writes the files of a volume so that all of them change at once.

A volume's files are links through `..data`, which is itself a link to a folder with one version.
Replacing that one link replaces all files. Guarantees: a reader that has opened the folder sees one
version; nothing is written if nothing has changed. Calls for one volume must not overlap.

Source: pkg/volume/util/atomic_writer.go, Kubernetes 1.33.
"""

from __future__ import annotations

import os
import tempfile
from datetime import UTC, datetime
from pathlib import Path

from kcm.errors import ContainerConfigError
from kcm.kubelet.environment.payloads import File, Payload
from kcm.kubelet.files.folders import remove_tree

DATA, NEW_DATA = "..data", "..data_tmp"
_LONGEST_NAME = 255
_LONGEST_PATH = 4096


def write(volume: Path, payload: Payload) -> bool:
    """Makes the volume contain exactly these files; returns whether that changed anything.

    Raises ContainerConfigError for an invalid path, such as one that leads out of the volume.
    """
    files = {os.path.normpath(_check_path(path)): file for path, file in payload.items()}
    old = _current(volume)
    if old is not None and _read(volume / old) == files:
        _show(volume, files)
        return False
    moment = datetime.now(UTC).strftime("..%Y_%m_%d_%H_%M_%S.")
    new = Path(tempfile.mkdtemp(prefix=moment, dir=volume))
    new.chmod(0o755)
    for path, file in files.items():
        _write_file(new / path, file)
    (volume / NEW_DATA).unlink(missing_ok=True)
    (volume / NEW_DATA).symlink_to(new.name)
    (volume / NEW_DATA).replace(volume / DATA)
    _show(volume, files)
    for left in volume.iterdir():
        if left.name.startswith("..") and left.name not in (DATA, new.name):
            remove_tree(left)
    return True


def _check_path(path: str) -> str:
    parts = path.split("/")
    if not path or path.startswith("/") or len(path) > _LONGEST_PATH:
        raise ContainerConfigError(f"invalid path: must be relative and not empty: {path}")
    if ".." in parts or parts[0].startswith("..") or os.path.normpath(path) == ".":
        raise ContainerConfigError(f"invalid path: must not contain or start with '..': {path}")
    if any(len(os.fsencode(part)) > _LONGEST_NAME for part in parts):
        raise ContainerConfigError(f"invalid path: a name is longer than 255 bytes: {path}")
    return path


def _current(volume: Path) -> str | None:
    link = volume / DATA
    return os.readlink(link) if link.is_symlink() and link.is_dir() else None


def _read(folder: Path) -> dict[str, File]:
    return {
        str(path.relative_to(folder)): File(path.read_bytes(), path.stat().st_mode & 0o7777)
        for path in folder.rglob("*")
        if path.is_file()
    }


def _write_file(path: Path, file: File) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    # Nobody else can read it before it has its mode: it may be a Secret.
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(handle, "wb") as out:
        out.write(file.data)
        if os.geteuid() == 0 and (file.owner, file.group) != (None, None):
            os.fchown(handle, _id(file.owner), _id(file.group))
        os.fchmod(handle, file.mode)


def _id(number: int | None) -> int:
    """Returns a user or group for chown, which leaves -1 as it is."""
    return -1 if number is None else number


def _show(volume: Path, files: Payload) -> None:
    """Creates the links to the files, and removes links to files that no longer exist."""
    wanted = {path.split("/")[0] for path in files}
    for name in wanted:
        if not (volume / name).is_symlink():
            (volume / name).symlink_to(f"{DATA}/{name}")
    for link in volume.iterdir():
        if link.is_symlink() and link.name not in wanted and not link.name.startswith(".."):
            link.unlink()
