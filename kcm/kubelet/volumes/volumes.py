"""The volumes of a node's pods, in `<pods>/<uid>/volumes/kubernetes.io~<kind>/<name>` as upstream.

Guarantees: setting up a volume twice changes nothing. Removing a pod's folder touches nothing
outside of it, whatever links the pod's containers put there.

Source: pkg/volume, pkg/kubelet/volumemanager and pkg/volume/util/subpath, Kubernetes 1.36.
Departures for processes, which have no mounts: emptyDir's medium and fsGroup are ignored; a subPath
of a configMap, secret, projected or downwardAPI volume is kept up to date.
"""

from __future__ import annotations

import posixpath
import stat
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from kcm.api.core_v1 import Pod
from kcm.api.core_v1.containers import Container, VolumeMount
from kcm.api.core_v1.volumes import Volume
from kcm.api.volumes.local import DRIVER
from kcm.errors import ContainerConfigError
from kcm.kubelet.cri import Mount
from kcm.kubelet.environment.expansion import expand_strictly
from kcm.kubelet.environment.payloads import Payloads, find_group, give_files
from kcm.kubelet.environment.variables import Lookups, PodLocation
from kcm.kubelet.files import beneath
from kcm.kubelet.files.folders import remove_tree
from kcm.kubelet.files.mounts import unmount_all
from kcm.kubelet.volumes import atomic
from kcm.kubelet.volumes.access import let_through, users_of
from kcm.kubelet.volumes.claimed import claimed_volume
from kcm.kubelet.volumes.local import LocalVolumes
from kcm.kubelet.volumes.mounter import SubPath, VolumeMounter, check_propagation
from kcm.kubelet.volumes.ownership import give_volume

LONGEST_FILE = 1024**2  # bytes of a file of environment variables
_MEMORY = "Memory"
EMPTY_DIR, HOST_PATH = "emptyDir", "hostPath"
_FOLDERS = {
    "emptyDir": "kubernetes.io~empty-dir",
    "configMap": "kubernetes.io~configmap",
    "secret": "kubernetes.io~secret",
    "downwardAPI": "kubernetes.io~downward-api",
    "projected": "kubernetes.io~projected",
}
_UNSUPPORTED = {"image": "images cannot be mounted on this node"}
_CLAIMED = ("persistentVolumeClaim", "ephemeral")


@dataclass(frozen=True)
class PodVolumes:
    """The folders of a pod's volumes by name, and messages about ignored settings.

    Volumes that are images have no folder: the runtime mounts them.
    """

    paths: Mapping[str, Path]
    messages: tuple[str, ...] = ()
    # The folder of each volume whose own path users of pods cannot change, by volume name.
    roots: Mapping[str, Path] = field(default_factory=dict)
    read_only: frozenset[str] = frozenset()  # volumes that no container may write to
    images: Mapping[str, str] = field(default_factory=dict)  # names of images, by volume name


class Volumes:
    """Sets up and removes the volumes of pods.

    Thread-safe for different pods; calls for one pod must not overlap.
    """

    def __init__(
        self,
        pods: Path,
        allowed_host_paths: Sequence[Path] = (),
        local: LocalVolumes | None = None,
        node_labels: Callable[[], Mapping[str, str]] = dict,
        mounter: VolumeMounter | None = None,
    ) -> None:
        """Without `local`, volumes of kcm.dev/local cannot be mounted. `mounter` is for containers
        that have a file system of their own; None for processes.
        """
        self._pods = pods
        self._allowed = tuple(allowed_host_paths)
        self._local = local
        self._node_labels = node_labels
        self._mounter = mounter

    def set_up(self, pod: Pod, lookups: Lookups, location: PodLocation) -> PodVolumes:
        """Creates volumes that are missing, and updates those whose content has changed.

        Raises ContainerConfigError for missing objects, and for volumes that this node does not
        allow.
        """
        payloads = Payloads(pod, lookups, location)
        self._open_to(pod)
        paths: dict[str, Path] = {}
        roots: dict[str, Path] = {}
        messages: list[str] = []
        for volume in pod.spec.volumes or []:
            kind = _kind(volume)
            if volume.image is not None and self._mounter is not None:
                continue
            try:
                place = self._claimed if kind in _CLAIMED else self._place_ordinary
                paths[volume.name], roots[volume.name] = place(pod, volume, kind, lookups)
                self._mount_memory(paths[volume.name], pod, volume, location)
                group = find_group(pod) if self._mounter is not None else None
                _fill(paths[volume.name], volume, payloads, group)
            except (ContainerConfigError, OSError) as error:
                raise ContainerConfigError(
                    f'MountVolume.SetUp failed for volume "{volume.name}" : {error}'
                ) from error
            in_memory = volume.empty_dir is not None and volume.empty_dir.medium
            if in_memory and self._mounter is None:
                messages.append(f'volume "{volume.name}": medium is ignored, it is on disk')
        return PodVolumes(paths, tuple(messages), roots, _read_only(pod), _list_images(pod))

    def _mount_memory(self, folder: Path, pod: Pod, volume: Volume, location: PodLocation) -> None:
        source = volume.empty_dir
        if self._mounter is not None and source is not None and source.medium:
            if source.medium != _MEMORY:
                raise ContainerConfigError(f'medium "{source.medium}" is not supported')
            self._mounter.mount_memory(folder, pod, source, location)
            give_volume(folder, pod)

    def _open_to(self, pod: Pod) -> None:
        """Lets only the users of the pod's containers access paths in the pod's folder."""
        folder = self.folder(pod.metadata.uid or "")
        if pod.spec.volumes:
            self._pods.mkdir(mode=0o711, parents=True, exist_ok=True)
            folder.mkdir(mode=0o700, exist_ok=True)
            let_through(folder, users_of(pod))

    def _claimed(self, pod: Pod, volume: Volume, kind: str, lookups: Lookups) -> tuple[Path, Path]:
        """Returns the path of the volume that a claim is bound to, and its root.

        A folder in the pod's own says that the pod has it.
        """
        mark = self.folder(pod.uid) / "volumes" / "kubernetes.io~csi" / volume.name
        bound = claimed_volume(pod, volume, lookups, self._node_labels(), is_mounted=mark.is_dir())
        spec = bound.spec
        if spec.volume_mode == "Block":
            raise ContainerConfigError(f"volume {bound.name} is a block device: not supported")
        if spec.host_path is not None:
            return host_path(spec.host_path.path, spec.host_path.type or "", self._allowed)
        if spec.local is not None:
            return host_path(spec.local.path, "Directory", self._allowed)
        if spec.csi is None or spec.csi.driver != DRIVER or self._local is None:
            source = spec.csi.driver if spec.csi else "its source"
            raise ContainerConfigError(
                f"volume {bound.name}: {source} is not supported on this node"
            )
        data = self._local.set_up(bound, users_of(pod))
        if self._mounter is not None and not mark.is_dir():
            give_volume(data, pod)
        mark.mkdir(parents=True, exist_ok=True)
        return data, data

    def _place_ordinary(
        self, pod: Pod, volume: Volume, kind: str, lookups: Lookups
    ) -> tuple[Path, Path]:
        if volume.host_path is not None:
            return host_path(volume.host_path.path, volume.host_path.type or "", self._allowed)
        if kind not in _FOLDERS:
            raise ContainerConfigError(
                _UNSUPPORTED.get(kind, f"{kind} is not supported on this node")
            )
        folder = self.folder(pod.metadata.uid or "") / "volumes" / _FOLDERS[kind] / volume.name
        if not folder.is_dir():
            folder.mkdir(parents=True)
            # Everybody may write, as upstream, but only the pod's users can reach the folder.
            folder.chmod(0o777 if kind == EMPTY_DIR else 0o755)
            if self._mounter is not None and kind == EMPTY_DIR:
                give_volume(folder, pod)
        return folder, folder

    def mounts(
        self,
        pod: Pod,
        container: Container,
        volumes: PodVolumes,
        environment: Mapping[str, str],
    ) -> list[Mount]:
        """Returns the mounts of a container. Raises ContainerConfigError."""
        mounts = [
            self._mount(mount, volumes, environment) for mount in container.volume_mounts or []
        ]
        if self._mounter is None:
            return mounts
        made = zip(container.volume_mounts or (), mounts, strict=True)
        return [
            self._isolate(pod, container.name, number, mount, spec)
            for number, (spec, mount) in enumerate(made)
        ]

    def _isolate(
        self, pod: Pod, container: str, number: int, mount: Mount, spec: VolumeMount
    ) -> Mount:
        """Returns a mount for a container with a file system of its own. Raises
        ContainerConfigError.
        """
        assert self._mounter is not None
        propagation = check_propagation(spec.mount_propagation, spec.recursive_read_only)
        mount = replace(mount, propagation=propagation)
        if mount.image or not (spec.sub_path or spec.sub_path_expr):
            return mount
        part = SubPath(Path(mount.root), Path(mount.host_path), (spec.name, container, number))
        try:
            target = self._mounter.bind_sub_path(self.folder(pod.uid), part)
        except OSError as error:
            raise ContainerConfigError(
                f'failed to prepare subPath for volumeMount "{spec.name}" of container '
                f'"{container}": {error.strerror or error}'
            ) from error
        return replace(mount, host_path=str(target))

    def _mount(
        self, mount: VolumeMount, volumes: PodVolumes, environment: Mapping[str, str]
    ) -> Mount:
        sub_path = mount.sub_path or ""
        if mount.sub_path_expr:
            sub_path = expand_strictly(mount.sub_path_expr, environment)
        if image := volumes.images.get(mount.name, ""):
            return Mount("", mount.mount_path, True, image=image, image_sub_path=sub_path)
        path = volumes.paths.get(mount.name)
        if path is None:
            raise ContainerConfigError(f'there is no volume "{mount.name}"')
        root = volumes.roots.get(mount.name, path)
        if sub_path:
            path = _below(root, path, sub_path, mount.name)
        read_only = bool(mount.read_only) or mount.name in volumes.read_only
        return Mount(str(path), mount.mount_path, read_only, str(root))

    def folder(self, uid: str) -> Path:
        """Returns a pod's own folder. Raises ContainerConfigError for an invalid uid."""
        if not uid or "/" in uid or uid.startswith("."):
            raise ContainerConfigError(f"not a uid: {uid!r}")
        return self._pods / uid

    def pods(self) -> list[str]:
        """Returns the uids of pods that have a folder."""
        return [entry.name for entry in self._pods.iterdir()] if self._pods.is_dir() else []

    def tear_down(self, uid: str) -> None:
        """Removes a pod's folder with everything in it, but not what is mounted in it.

        Raises OSError; then nothing was removed, or not all of it.
        """
        folder = self.folder(uid)
        unmount_all(folder)
        remove_tree(folder)


def read_volume_file(volumes: PodVolumes, name: str, path: str) -> str:
    """Returns the text of a file on a volume, which containers may have written.

    It is read up to `LONGEST_FILE` bytes, and no link is followed. Raises ContainerConfigError.
    """
    folder = volumes.paths.get(name)
    if folder is None:
        raise ContainerConfigError(f'cannot find the volume "{name}" referenced by FileKeyRef')
    try:
        with open(beneath.open_file(folder, path), "rb") as file:
            raw = file.read(LONGEST_FILE + 1)
    except OSError as error:
        raise ContainerConfigError(
            f'failed to open environment variable file "{path}" of volume "{name}": '
            f"{error.strerror or error}"
        ) from error
    if len(raw) > LONGEST_FILE:
        raise ContainerConfigError(f'file "{path}" of volume "{name}" is too long')
    return raw.decode("utf-8", "surrogateescape")


def _kind(volume: Volume) -> str:
    """Returns the name of the volume's source. A volume without one is an emptyDir."""
    return next(iter(volume.sources()), EMPTY_DIR)


def _read_only(pod: Pod) -> frozenset[str]:
    """Returns the volumes that are claims which the pod wants for reading only."""
    return frozenset(
        volume.name
        for volume in pod.spec.volumes or ()
        if volume.persistent_volume_claim is not None and volume.persistent_volume_claim.read_only
    )


def _list_images(pod: Pod) -> Mapping[str, str]:
    """Returns the names of the images that are volumes, by the names of the volumes."""
    return {
        volume.name: volume.image.reference or ""
        for volume in pod.spec.volumes or ()
        if volume.image is not None
    }


def _fill(folder: Path, volume: Volume, payloads: Payloads, group: int | None) -> None:
    """Writes the files of a volume that the kubelet fills, readable for `group` if there is one."""
    if (payload := payloads.build(volume)) is not None:
        atomic.write(folder, give_files(payload, group))


def _below(root: Path, volume: Path, sub_path: str, name: str) -> Path:
    """Returns a path in a volume, creating a folder there if it does not exist.

    Raises ContainerConfigError if the path leads out of the volume, also by links.
    """
    clean = posixpath.normpath(sub_path)
    path = volume / clean
    outside = not path.resolve().is_relative_to(volume.resolve())
    if clean.startswith(("/", "..")) or outside:
        raise ContainerConfigError(f'subPath "{sub_path}" leads out of volume "{name}"')
    try:
        beneath.make_folder(root, str(path.relative_to(root)))
    except (OSError, ContainerConfigError) as error:
        raise ContainerConfigError(
            f'failed to create subPath directory for volumeMount "{name}": {error}'
        ) from error
    return path


# --- hostPath volumes, which are allowed only below the folders of --allowed-host-paths.
#
# Source: pkg/volume/hostpath/host_path.go (the types and their checks), Kubernetes 1.33. Departure:
# upstream allows every path; here none is allowed by default.


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
