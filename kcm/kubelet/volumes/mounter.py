"""Mounts what containers need of volumes: memory, and parts of volumes.

A part (`subPath`) is bound to a path of the kubelet's own, `volume-subpaths/<volume>/<container>/
<number>` in the pod's folder, which is what the container gets. So a pod cannot replace it by a
link between its check and the container's start.

Source: pkg/volume/util/subpath/subpath_linux.go and pkg/volume/emptydir, Kubernetes 1.36.
"""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from pathlib import Path

from kcm.api.core_v1 import Pod
from kcm.api.core_v1.volume_sources import EmptyDirVolumeSource
from kcm.errors import ContainerConfigError
from kcm.helpers.pods import list_containers
from kcm.kubelet.environment.variables import PodLocation
from kcm.kubelet.files import beneath, mounts

SUB_PATHS = "volume-subpaths"
_NO_LIMIT = 2**40  # bytes


@dataclass(frozen=True)
class SubPath:
    """A part of a volume: `path` in the volume's folder, below `root`, for a mount of a container.

    `place` is volume, container and number of the mount.
    """

    root: Path
    path: Path
    place: tuple[str, str, int]


class VolumeMounter:
    """Makes mounts in folders of pods. Thread-safe for different pods."""

    def mount_memory(
        self, folder: Path, pod: Pod, source: EmptyDirVolumeSource, location: PodLocation
    ) -> None:
        """Mounts memory for an emptyDir, unless it is mounted already. Raises OSError.

        It may have as much as its sizeLimit, the limits of the pod's containers and the node allow.
        """
        if folder.resolve() not in mounts.list_mounts(folder):
            mounts.mount_memory(folder, _limit_memory(pod, source, location))

    def bind_sub_path(self, pod_folder: Path, part: SubPath) -> Path:
        """Binds a part of a volume; returns the path that a container gets.

        A part that was bound for an earlier attempt of the container is bound anew, since another
        file may have its name by now. Raises ContainerConfigError and OSError.
        """
        volume, container, number = part.place
        target = pod_folder / SUB_PATHS / volume / container / str(number)
        if target.exists():
            mounts.unmount_all(target)
        descriptor = beneath.open_path(part.root, str(part.path.relative_to(part.root)))
        try:
            is_folder = stat.S_ISDIR(os.fstat(descriptor).st_mode)
            _make_target(target, is_folder=is_folder)
            mounts.bind(descriptor, target)
        finally:
            os.close(descriptor)
        return target


def _make_target(target: Path, *, is_folder: bool) -> None:
    """Makes an empty file or folder of ours to mount on, in place of one of the other kind."""
    target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    if target.is_dir() and not is_folder:
        target.rmdir()
    elif target.exists() and not target.is_dir() and is_folder:
        target.unlink()
    if is_folder:
        target.mkdir(exist_ok=True)
    else:
        target.touch()


def _limit_memory(pod: Pod, source: EmptyDirVolumeSource, location: PodLocation) -> int:
    limits = [
        (container.resources.limits or {}).get("memory") for container in list_containers(pod.spec)
    ]
    of_pod = [sum(limit.value() for limit in limits if limit)] if all(limits) else []
    of_volume = [source.size_limit.value()] if source.size_limit else []
    node = location.allocatable.get("memory")
    of_node = [node.value()] if node else []
    return min([*(size for size in (*of_pod, *of_volume, *of_node) if size > 0), _NO_LIMIT])


def check_propagation(propagation: str | None, recursive_read_only: str | None) -> str:
    """Returns the propagation of a mount, "" for none. Raises ContainerConfigError."""
    if recursive_read_only == "Enabled":
        raise ContainerConfigError(
            "failed to resolve recursive read-only mode: recursive read-only mounts are not "
            "supported on this node"
        )
    return "" if propagation in (None, "None") else propagation
