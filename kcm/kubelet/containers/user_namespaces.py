"""Gives pods users of their own: ranges of the node's ids, which no other pod has.

A pod's range is in the file `userns` of its folder. It is taken as long as that folder is there,
which goes when the pod's containers have gone. So nothing is lost or given twice by a restart.

Source: pkg/kubelet/userns/userns_manager.go, Kubernetes 1.36. Departure: ranges begin at 65536
always; the subordinate ids of a user `kubelet` are not asked for.
"""

from __future__ import annotations

import os
import threading
from pathlib import Path

from kcm.errors import ContainerRuntimeError
from kcm.kubelet.isolation import IDMapping, UserNamespace

LENGTH = 65536  # ids of a pod
_FILE = "userns"
_END = 2**32


class UserNamespaces:
    """The ranges of the pods of a node. Thread-safe."""

    def __init__(self, pods_dir: Path) -> None:
        """`pods_dir` has the folders of the pods."""
        self._pods_dir = pods_dir
        self._lock = threading.Lock()

    def has(self, folder: Path) -> bool:
        """Reports whether the pod with this folder has a range."""
        return (folder / _FILE).exists()

    def get(self, folder: Path) -> UserNamespace:
        """Returns the range of the pod with this folder, which gets one if it has none.

        Raises ContainerRuntimeError.
        """
        try:
            with self._lock:
                first = _read(folder / _FILE) or self._find_free()
                folder.mkdir(mode=0o700, parents=True, exist_ok=True)
                _write(folder / _FILE, first)
        except (OSError, ValueError) as error:
            raise ContainerRuntimeError(f"user namespace: {error}") from error
        mapping = (IDMapping(host_id=first, container_id=0, length=LENGTH),)
        return UserNamespace(uids=mapping, gids=mapping)

    def _find_free(self) -> int:
        """Returns the first id of a range that no pod has. Raises OSError and ValueError."""
        taken = {_read(file) for file in self._pods_dir.glob(f"*/{_FILE}")}
        for first in range(LENGTH, _END, LENGTH):
            if first not in taken:
                return first
        raise ValueError("could not find an empty slot to allocate a user namespace")


def _read(file: Path) -> int:
    """Returns the first id of a range, 0 without a file. Raises OSError and ValueError."""
    try:
        first = int(file.read_text())
    except FileNotFoundError:
        return 0
    if first % LENGTH or not LENGTH <= first < _END:
        raise ValueError(f"{file} has no range of ids: {first}")
    return first


def _write(file: Path, first: int) -> None:
    """Writes a range so that it is there whole or not at all. Raises OSError."""
    if file.exists():
        return
    new = file.with_suffix(".new")
    with new.open("w") as out:
        out.write(f"{first}\n")
        out.flush()
        os.fsync(out.fileno())
    new.rename(file)
