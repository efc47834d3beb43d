"""core/v1: the statuses of containers, as the kubelet last observed them.

Source: staging/src/k8s.io/api/core/v1/types.go, Kubernetes 1.33.
"""

from __future__ import annotations

from typing import Annotated

from kcm.api.core_v1.containers import ResourceRequirements
from kcm.apimachinery.base import Bool, Int32, Int64, MergeKey, Model
from kcm.apimachinery.meta_v1 import Time
from kcm.apimachinery.quantity import ResourceList


class ContainerStateWaiting(Model):
    """The state of a container that is not running yet, and the reason."""

    reason: str | None = None
    message: str | None = None


class ContainerStateRunning(Model):
    """The time at which a running container was started."""

    started_at: Time | None = None


class ContainerStateTerminated(Model):
    """How and when a container ended."""

    exit_code: Int32 = 0
    signal: Int32 | None = None
    reason: str | None = None
    message: str | None = None
    started_at: Time | None = None
    finished_at: Time | None = None
    container_id: str | None = None


class ContainerState(Model):
    """The state of a container. At most one field is set; without any the container is waiting."""

    waiting: ContainerStateWaiting | None = None
    running: ContainerStateRunning | None = None
    terminated: ContainerStateTerminated | None = None


class ImageVolumeStatus(Model):
    """The image that a volume has mounted, with its digest."""

    image_ref: str | None = None


class VolumeStatus(Model):
    """The state of a mounted volume, by the kind of its source."""

    image: ImageVolumeStatus | None = None


class VolumeMountStatus(Model):
    """How a volume was mounted."""

    name: str = ""
    mount_path: str = ""
    read_only: Bool | None = None
    recursive_read_only: str | None = None
    volume_status: VolumeStatus | None = None


class LinuxContainerUser(Model):
    """The user and groups of a container's first process on Linux."""

    uid: Int64 = 0
    gid: Int64 = 0
    supplemental_groups: list[Int64] | None = None


class ContainerUser(Model):
    """The user as whom a container's first process runs."""

    linux: LinuxContainerUser | None = None


class ResourceHealth(Model):
    """The health of one device of a container."""

    resource_id: str = ""
    health: str | None = None
    message: str | None = None


class ResourceStatus(Model):
    """The health of a container's devices of one resource."""

    name: str = ""
    resources: Annotated[list[ResourceHealth] | None, MergeKey("resourceID", patches=False)] = None


class ContainerStatus(Model):
    """The state of a container, as the kubelet last observed it."""

    name: str = ""
    state: ContainerState | None = None
    last_state: ContainerState | None = None
    ready: Bool = False
    restart_count: Int32 = 0
    image: str = ""
    image_id: str = ""
    container_id: str | None = None
    started: Bool | None = None
    allocated_resources: ResourceList | None = None
    resources: ResourceRequirements | None = None
    volume_mounts: Annotated[list[VolumeMountStatus] | None, MergeKey("mountPath")] = None
    user: ContainerUser | None = None
    allocated_resources_status: Annotated[list[ResourceStatus] | None, MergeKey("name")] = None
    stop_signal: str | None = None
