"""The columns of volumes, volume claims, and the kinds of storage.k8s.io.

Source: pkg/printers/internalversion/printers.go, Kubernetes 1.33.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime

from kcm.api.core_v1 import PersistentVolume, PersistentVolumeClaim
from kcm.api.storage_v1 import (
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    StorageClass,
    VolumeAttachment,
    VolumeAttributesClass,
)
from kcm.apimachinery.meta_v1 import KubeObject
from kcm.kinds.printing.column import AGE, NAME, NONE, Column

_UNSET = "<unset>"
_SHORT_MODES = {
    "ReadWriteOnce": "RWO",
    "ReadOnlyMany": "ROX",
    "ReadWriteMany": "RWX",
    "ReadWriteOncePod": "RWOP",
}
_DEFAULT_CLASS = (
    "storageclass.kubernetes.io/is-default-class",
    "storageclass.beta.kubernetes.io/is-default-class",
)
_CLASS_ANNOTATION = "volume.beta.kubernetes.io/storage-class"


def _phase(obj: PersistentVolume | PersistentVolumeClaim, _: datetime) -> str:
    return "Terminating" if obj.deleting else obj.status.phase or ""


def _modes(modes: Iterable[str]) -> str:
    modes = set(modes)
    return ",".join(short for mode, short in _SHORT_MODES.items() if mode in modes)


def _claim_capacity(claim: PersistentVolumeClaim, _: datetime) -> str:
    if not claim.spec.volume_name:
        return ""
    return str((claim.status.capacity or {}).get("storage", "0"))


def _claim_modes(claim: PersistentVolumeClaim, _: datetime) -> str:
    return _modes((claim.status.access_modes or ()) if claim.spec.volume_name else ())


def _claim_of(volume: PersistentVolume, _: datetime) -> str:
    claim = volume.spec.claim_ref
    return "" if claim is None else f"{claim.namespace or ''}/{claim.name or ''}"


def _class_of(volume: PersistentVolume, _: datetime) -> str:
    return volume.annotations.get(_CLASS_ANNOTATION) or volume.spec.storage_class_name or ""


def _class_name(storage_class: StorageClass, _: datetime) -> str:
    default = any(storage_class.annotations.get(name) == "true" for name in _DEFAULT_CLASS)
    return f"{storage_class.name} (default)" if default else storage_class.name


def _yes(value: bool | None) -> str:
    return "true" if value else "false"


def _audiences(driver: CSIDriver, _: datetime) -> str:
    requests = driver.spec.token_requests
    return _UNSET if requests is None else ",".join(request.audience for request in requests)


COLUMNS: Mapping[type[KubeObject], tuple[Column, ...]] = {
    PersistentVolume: (
        NAME,
        Column("Capacity", lambda pv, _: str((pv.spec.capacity or {}).get("storage", "0"))),
        Column("Access Modes", lambda pv, _: _modes(pv.spec.access_modes or ())),
        Column("Reclaim Policy", lambda pv, _: pv.spec.persistent_volume_reclaim_policy or ""),
        Column("Status", _phase),
        Column("Claim", _claim_of),
        Column("StorageClass", _class_of),
        Column(
            "VolumeAttributesClass", lambda pv, _: pv.spec.volume_attributes_class_name or _UNSET
        ),
        Column("Reason", lambda pv, _: pv.status.reason or ""),
        AGE,
        Column("VolumeMode", lambda pv, _: pv.spec.volume_mode or _UNSET, wide=True),
    ),
    PersistentVolumeClaim: (
        NAME,
        Column("Status", _phase),
        Column("Volume", lambda claim, _: claim.spec.volume_name or ""),
        Column("Capacity", _claim_capacity),
        Column("Access Modes", _claim_modes),
        Column("StorageClass", lambda claim, _: claim.spec.storage_class_name or ""),
        Column(
            "VolumeAttributesClass",
            lambda claim, _: claim.spec.volume_attributes_class_name or _UNSET,
        ),
        AGE,
        Column("VolumeMode", lambda claim, _: claim.spec.volume_mode or _UNSET, wide=True),
    ),
    StorageClass: (
        Column("Name", _class_name),
        Column("Provisioner", lambda item, _: item.provisioner),
        Column("ReclaimPolicy", lambda item, _: item.reclaim_policy or "Delete"),
        Column("VolumeBindingMode", lambda item, _: item.volume_binding_mode or "Immediate"),
        Column(
            "AllowVolumeExpansion",
            lambda item, _: "true" if item.allow_volume_expansion else "false",
            type="boolean",
        ),
        AGE,
    ),
    VolumeAttachment: (
        NAME,
        Column("Attacher", lambda item, _: item.spec.attacher),
        Column("PV", lambda item, _: item.spec.source.persistent_volume_name or ""),
        Column("Node", lambda item, _: item.spec.node_name),
        Column("Attached", lambda item, _: _yes(item.status.attached), type="boolean"),
        AGE,
    ),
    CSIDriver: (
        NAME,
        Column("AttachRequired", lambda item, _: _yes(item.spec.attach_required), type="boolean"),
        Column("PodInfoOnMount", lambda item, _: _yes(item.spec.pod_info_on_mount), type="boolean"),
        Column("StorageCapacity", lambda item, _: _yes(item.spec.storage_capacity), type="boolean"),
        Column("TokenRequests", _audiences),
        Column(
            "RequiresRepublish",
            lambda item, _: _yes(item.spec.requires_republish),
            type="boolean",
        ),
        Column("Modes", lambda item, _: ",".join(item.spec.volume_lifecycle_modes or ()) or NONE),
        AGE,
    ),
    CSINode: (
        NAME,
        Column("Drivers", lambda item, _: str(len(item.spec.drivers)), type="integer"),
        AGE,
    ),
    CSIStorageCapacity: (
        NAME,
        Column("StorageClassName", lambda item, _: item.storage_class_name),
        Column("Capacity", lambda item, _: _UNSET if item.capacity is None else str(item.capacity)),
    ),
    VolumeAttributesClass: (NAME, Column("DriverName", lambda item, _: item.driver_name), AGE),
}
