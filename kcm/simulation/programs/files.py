"""The files that a simulated container sees: those of its volumes, and what programs write.

Volumes of objects have what the kubelet would put there, and follow their objects. An emptyDir is
kept as long as its pod, in memory. What else the container's image or node would have is not known.
"""

from __future__ import annotations

import errno
import os
import posixpath
from collections.abc import Mapping
from dataclasses import dataclass, replace

from kcm import errors
from kcm.api.core_v1 import Container, Pod
from kcm.api.core_v1.containers import VolumeMount
from kcm.api.core_v1.volumes import Volume
from kcm.kubelet.containers.hosts import build_hosts
from kcm.kubelet.environment.expansion import expand_strictly
from kcm.kubelet.environment.payloads import File, Payload, Payloads, find_group, give_files
from kcm.kubelet.environment.variables import Lookups, PodLocation
from kcm.kubelet.files.log_tail import FALLBACK
from kcm.kubelet.kuberuntime.configs import name_host
from kcm.kubelet.kuberuntime.security_context import determine_effective_security_context
from kcm.simulation.programs.syntax import NotUnderstood

MOST_BYTES, MOST_FILES = 64 * 1024, 100  # that the programs of a pod may have in files
TERMINATION_LOG = "/dev/termination-log"
_TMPFS, _DISK = "tmpfs", "61267"  # as mounttest calls them; the number is that of ext4
_READ, _WRITE = 4, 2
_OPEN = ("/", "/tmp", "/dev")  # folders that every image has

Disk = dict[str, File | None]
"""The files of an emptyDir or of a container's own layer, by their paths; None is a folder."""


@dataclass(frozen=True, slots=True)
class Source:
    """Where the contents of volumes come from."""

    lookups: Lookups
    location: PodLocation


@dataclass(frozen=True, slots=True)
class Status:
    """The attributes of a file or folder that stat(2) returns."""

    mode: int
    is_folder: bool
    owner: int
    group: int
    kind: str = _DISK  # of the file system


@dataclass(frozen=True, slots=True)
class _Mount:
    path: str
    volume: Volume
    inner: str  # path in the volume
    read_only: bool


class ContainerFiles:
    """The files of one container. Paths are as the container sees them.

    Between two uses it does not keep the pod, of which there are many. Methods raise OSError as the
    calls of the system would, NotUnderstood for what is not known, and ContainerConfigError for a
    volume that cannot be set up.
    """

    def __init__(
        self,
        pod: Pod,
        container: Container,
        environment: Mapping[str, str],
        source: Source,
        disks: dict[str, Disk],
    ) -> None:
        """`disks` are those of the pod, by the names of its volumes. Raises ContainerConfigError
        if a volume cannot be set up.
        """
        self.built = 0  # bytes of volumes that were built and are not yet charged to the program
        self.falls_back = container.termination_message_policy == FALLBACK
        security = determine_effective_security_context(pod, container)
        self.user, self.group = security.run_as_user or 0, security.run_as_group or 0
        self.pod_group = find_group(pod)
        of_pod = pod.spec.security_context
        more = bool(of_pod.supplemental_groups) if of_pod is not None else False
        self.has_more_groups = more or self.pod_group is not None
        self._pod: Pod | None = pod
        self._source = source
        self._disks = disks
        self._folder = container.working_dir or "/"
        self._is_sealed = bool(security.read_only_root_filesystem)
        self._message_path = posixpath.normpath(
            container.termination_message_path or TERMINATION_LOG
        )
        self._layer: Disk = {self._message_path: File(b"", 0o666)}
        self._seen: dict[str, Payload] = {}  # volumes as last built
        self._fresh: set[str] = set()
        volumes = {volume.name: volume for volume in pod.spec.volumes or ()}
        mounts = [
            self._mount(mount, volumes[mount.name], environment)
            for mount in container.volume_mounts or ()
        ]
        self._mounts = sorted(mounts, key=lambda mount: len(mount.path), reverse=True)
        self.put_away()

    @property
    def pod(self) -> Pod:
        """The pod, while its program takes steps."""
        assert self._pod is not None
        return self._pod

    def _mount(self, mount: VolumeMount, volume: Volume, environment: Mapping[str, str]) -> _Mount:
        inner = mount.sub_path or expand_strictly(mount.sub_path_expr or "", environment)
        if inner.startswith("/") or ".." in inner.split("/"):
            raise errors.ContainerConfigError(f'failed to prepare subPath "{inner}"')
        place = _Mount(
            posixpath.normpath(mount.mount_path), volume, inner.rstrip("/"), bool(mount.read_only)
        )
        if volume.empty_dir is not None:
            disk = self._disks.setdefault(mount.name, {})
            parts = inner.split("/") if inner else []
            for count in range(1, len(parts) + 1):
                disk.setdefault("/".join(parts[:count]), None)
        elif volume.config_map is not None or volume.secret is not None:
            self._build(volume)  # a missing object keeps the container from starting
        return place

    def take_out(self, pod: Pod) -> None:
        """Makes the next read of each volume build it anew, for the pod as it is now."""
        self._pod = pod
        self._fresh.clear()

    def put_away(self) -> None:
        """Lets the pod go until the next use."""
        self._pod = None

    def forget(self) -> None:
        """Frees what is only for reading, since the program reads no more."""
        self._seen.clear()

    def message(self) -> bytes:
        """Returns what was written to the file for the termination message."""
        file = self._layer[self._message_path]
        return file.data if file is not None else b""

    # --- what programs do

    def read(self, path: str) -> bytes:
        """Returns the content of a file."""
        path = self._path(path)
        _, file = self._look(path)
        if file is None:
            raise _fault(errno.EISDIR, path)
        self._check(file, _READ, path)
        return file.data

    def stat(self, path: str) -> Status:
        """Returns what is known of a file or folder."""
        path = self._path(path)
        mount, file = self._look(path)
        kind = _kind_of(mount.volume) if mount is not None else _DISK
        group = self.pod_group or 0
        if file is None:
            is_root = mount is not None and path == mount.path and not mount.inner
            is_open = is_root and mount is not None and mount.volume.empty_dir is not None
            return Status(0o777 if is_open else 0o755, True, 0, group, kind)
        return Status(file.mode, False, file.owner or 0, file.group or 0, kind)

    def write(self, path: str, data: bytes, *, append: bool = False, mode: int = 0o644) -> None:
        """Writes a file, which is created if it is missing."""
        path = self._path(path)
        if path == "/dev/null":
            return
        disk, name = self._find_disk(path)
        before = disk.get(name)
        if name in disk and before is None:
            raise _fault(errno.EISDIR, path)
        if before is not None:
            self._check(before, _WRITE, path)
        else:
            before = File(b"", mode, self.user, self.pod_group or self.group)
        data = before.data + data if append else data
        self._reserve(len(data) - len(before.data), new=name not in disk)
        disk[name] = replace(before, data=data)

    # --- where files are

    def _path(self, path: str) -> str:
        if "\0" in path or not path:
            raise _fault(errno.ENOENT, path)
        return "/" + posixpath.normpath(posixpath.join("/", self._folder, path)).lstrip("/")

    def _find_mount(self, path: str) -> tuple[_Mount, str] | None:
        """Returns the volume with this path, and the path in it."""
        for mount in self._mounts:
            if path == mount.path or path.startswith(mount.path.rstrip("/") + "/"):
                inner = posixpath.join(mount.inner, path[len(mount.path) :].lstrip("/"))
                return mount, inner.rstrip("/")
        return None

    def _look(self, path: str) -> tuple[_Mount | None, File | None]:
        """Returns the volume that has the path, and the file there, None for a folder."""
        if path in self._layer:
            return None, self._layer[path]
        place = self._find_mount(path)
        if place is not None:
            mount, inner = place
            return mount, _pick(self._contents(mount.volume), inner, path)
        if path == "/dev/null":
            return None, File(b"", 0o666)
        if path in _OPEN:
            return None, None
        if path == "/etc/hosts" and not self.pod.spec.host_network:
            hosts = build_hosts(self.pod, self._source.location.pod_ips, name_host(self.pod), "")
            return None, File(hosts.encode())
        raise NotUnderstood  # the image may have it

    def _contents(self, volume: Volume) -> Mapping[str, File | None]:
        if volume.empty_dir is not None:
            return self._disks[volume.name]
        return self._payload(volume)

    def _payload(self, volume: Volume) -> Payload:
        """Returns the files of a volume of objects, those that were there if an object is gone."""
        if volume.name in self._fresh:
            return self._seen[volume.name]
        try:
            self._seen[volume.name] = self._build(volume)
        except errors.Temporary:
            if volume.name not in self._seen:
                raise
        self._fresh.add(volume.name)
        return self._seen[volume.name]

    def _build(self, volume: Volume) -> Payload:
        payloads = Payloads(self.pod, self._source.lookups, self._source.location)
        files = payloads.build(volume)
        if files is None:
            raise NotUnderstood  # files of a node, a disk or an image
        self.built += sum(len(file.data) for file in files.values())
        return give_files(files, self.pod_group)

    def _find_disk(self, path: str) -> tuple[Disk, str]:
        """Returns where a file is written, and its name there."""
        place = None if path in self._layer else self._find_mount(path)
        if place is None:
            folder = posixpath.dirname(path)
            if path not in self._layer and folder not in _OPEN:
                raise NotUnderstood
            if self._is_sealed and path != self._message_path:
                raise _fault(errno.EROFS, path)
            if path not in self._layer and self.user and folder != "/tmp":
                raise _fault(errno.EACCES, path)
            return self._layer, path
        mount, inner = place
        if mount.volume.empty_dir is None and not mount.read_only:
            self._payload(mount.volume)  # what is no volume of objects is not known
        if mount.volume.empty_dir is None or mount.read_only:
            raise _fault(errno.EROFS, path)
        disk = self._disks[mount.volume.name]
        folder = posixpath.dirname(inner)
        if folder and folder not in disk:
            raise _fault(errno.ENOENT, path)
        return disk, inner

    def _check(self, file: File, wanted: int, path: str) -> None:
        """Checks the permissions of the container's user."""
        groups = {self.group, self.pod_group}
        shift = 6 if file.owner == self.user else 3 if (file.group or 0) in groups else 0
        if self.user and not file.mode >> shift & wanted:
            raise _fault(errno.EACCES, path)

    def _reserve(self, more: int, *, new: bool) -> None:
        disks = (self._layer, *self._disks.values())
        size = sum(len(file.data) for disk in disks for file in disk.values() if file is not None)
        if size + more > MOST_BYTES or (new and sum(map(len, disks)) >= MOST_FILES):
            raise _fault(errno.ENOSPC, "")


def _pick(files: Mapping[str, File | None], inner: str, path: str) -> File | None:
    """Returns a file by its path in a volume, None for a folder. Raises OSError."""
    if inner in files:
        return files[inner]
    if not inner or any(name.startswith(f"{inner}/") for name in files):
        return None
    raise _fault(errno.ENOENT, path)


def _kind_of(volume: Volume) -> str:
    in_memory = volume.secret or volume.downward_api or volume.projected
    medium = volume.empty_dir.medium if volume.empty_dir is not None else ""
    return _TMPFS if in_memory is not None or medium == "Memory" else _DISK


def _fault(code: int, path: str) -> OSError:
    return OSError(code, os.strerror(code), path)
