"""Validation of the volume mounts and volume devices of containers.

Source: ValidateVolumeMounts and ValidateVolumeDevices in pkg/apis/core/validation/validation.go,
Kubernetes 1.33.
"""

from __future__ import annotations

from kcm.api.core_v1 import Container, Volume
from kcm.api.core_v1.containers import VolumeDevice, VolumeMount
from kcm.apimachinery.field_errors import (
    Faults,
    forbidden,
    invalid,
    not_found,
    not_supported,
    required,
)
from kcm.kinds.validation.podspec.context import PodContext
from kcm.kinds.validation.podspec.volumes.paths import descending, no_backsteps

_PROPAGATIONS = ("Bidirectional", "HostToContainer", "None")
_RECURSIVE = ("Disabled", "Enabled", "IfPossible")


def volume_mounts(container: Container, path: str, pod: PodContext) -> Faults:
    faults: Faults = []
    device_names = {device.name for device in container.volume_devices or ()}
    device_paths = {device.device_path for device in container.volume_devices or ()}
    seen: set[str] = set()
    for index, mount in enumerate(container.volume_mounts or ()):
        where = f"{path}[{index}]"
        if not mount.name:
            faults.append(required(f"{where}.name"))
        elif mount.name not in pod.volumes:
            faults.append(not_found(f"{where}.name", mount.name))
        if not mount.mount_path:
            faults.append(required(f"{where}.mountPath"))
        if mount.mount_path in seen:
            faults.append(invalid(f"{where}.mountPath", mount.mount_path, "must be unique"))
        seen.add(mount.mount_path)
        if mount.name in device_names:
            detail = "must not already exist in volumeDevices"
            faults.append(invalid(f"{where}.name", mount.name, detail))
        if mount.mount_path in device_paths:
            detail = "must not already exist as a path in volumeDevices"
            faults.append(invalid(f"{where}.mountPath", mount.mount_path, detail))
        # As in upstream's messages, these paths do not say which mount it is.
        faults += _part_of_volume(mount, path, where)
        faults += _propagation(mount, container, f"{path}.mountPropagation")
        faults += _recursive_read_only(mount, f"{path}.recursiveReadOnly")
    return faults


def _part_of_volume(mount: VolumeMount, path: str, place: str) -> Faults:
    faults: Faults = []
    if mount.sub_path:
        faults += descending(mount.sub_path, f"{path}.subPath")
    if mount.sub_path_expr:
        where = f"{path}.subPathExpr"
        if mount.sub_path:
            detail = "subPathExpr and subPath are mutually exclusive"
            faults.append(invalid(f"{place}.subPathExpr", mount.sub_path_expr, detail))
        faults += descending(mount.sub_path_expr, where)
    return faults


def _propagation(mount: VolumeMount, container: Container, path: str) -> Faults:
    propagation = mount.mount_propagation
    if propagation is None:
        return []
    faults: Faults = []
    if propagation not in _PROPAGATIONS:
        faults.append(not_supported(path, propagation, _PROPAGATIONS))
    context = container.security_context
    if propagation == "Bidirectional" and not (context and context.privileged):
        detail = "Bidirectional mount propagation is available only to privileged containers"
        faults.append(forbidden(path, detail))
    return faults


def _recursive_read_only(mount: VolumeMount, path: str) -> Faults:
    wanted = mount.recursive_read_only
    if wanted is None or wanted == "Disabled":
        return []
    if wanted not in _RECURSIVE:
        return [not_supported(path, wanted, _RECURSIVE)]
    faults: Faults = []
    if not mount.read_only:
        faults.append(forbidden(path, "may only be specified when readOnly is true"))
    if mount.mount_propagation not in (None, "None"):
        detail = "may only be specified when mountPropagation is None or not specified"
        faults.append(forbidden(path, detail))
    return faults


def volume_devices(container: Container, path: str, pod: PodContext) -> Faults:
    faults: Faults = []
    mount_names = {mount.name for mount in container.volume_mounts or ()}
    mount_paths = {mount.mount_path for mount in container.volume_mounts or ()}
    names: set[str] = set()
    paths: set[str] = set()
    for index, device in enumerate(container.volume_devices or ()):
        where = f"{path}[{index}]"
        faults += _device(device, where, pod.volumes.get(device.name))
        if device.name in names:
            faults.append(invalid(f"{where}.name", device.name, "must be unique"))
        if device.device_path in paths:
            faults.append(invalid(f"{where}.devicePath", device.device_path, "must be unique"))
        if device.name in mount_names:
            detail = "must not already exist in volumeMounts"
            faults.append(invalid(f"{where}.name", device.name, detail))
        if device.device_path in mount_paths:
            detail = "must not already exist as a path in volumeMounts"
            faults.append(invalid(f"{where}.devicePath", device.device_path, detail))
        names.add(device.name)
        paths.add(device.device_path)
    return faults


def _device(device: VolumeDevice, path: str, volume: Volume | None) -> Faults:
    faults = [] if device.name else [required(f"{path}.name")]
    if volume is None:
        faults.append(not_found(f"{path}.name", device.name))
    elif volume.persistent_volume_claim is None and volume.ephemeral is None:
        detail = (
            "can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode"
        )
        faults.append(invalid(f"{path}.name", device.name, detail))
    if not device.device_path:
        faults.append(required(f"{path}.devicePath"))
    elif no_backsteps(device.device_path, path):
        detail = "can not contain backsteps ('..')"
        faults.append(invalid(f"{path}.devicePath", device.device_path, detail))
    return faults
