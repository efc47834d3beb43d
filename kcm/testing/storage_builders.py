"""Builds claims, volumes and storage classes for tests, as `kcm.testing.builders` does."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kcm.api.core_v1 import (
    ObjectReference,
    PersistentVolume,
    PersistentVolumeClaim,
    PersistentVolumeClaimSpec,
    PersistentVolumeClaimStatus,
)
from kcm.api.core_v1.persistent_volumes import (
    CSIPersistentVolumeSource,
    PersistentVolumeSpec,
    PersistentVolumeStatus,
)
from kcm.api.core_v1.volume_claims import VolumeResourceRequirements
from kcm.api.core_v1.volume_sources import HostPathVolumeSource
from kcm.api.storage_v1 import (
    CSIDriver,
    CSIDriverSpec,
    StorageClass,
    VolumeAttachment,
    VolumeAttachmentSource,
    VolumeAttachmentSpec,
    VolumeAttachmentStatus,
    VolumeError,
)
from kcm.api.volumes.attachments import attachment_name
from kcm.apimachinery.quantity import Quantity
from kcm.kinds.defaults import apply
from kcm.testing.builders import START, object_meta


def claim(
    name: str = "data",
    size: str = "1Gi",
    *,
    namespace: str = "default",
    metadata: Mapping[str, Any] | None = None,
    status: Mapping[str, Any] | None = None,
    **spec: Any,
) -> PersistentVolumeClaim:
    """Returns a claim for a volume that one node can use at a time."""
    fields = {
        "access_modes": ["ReadWriteOnce"],
        "resources": VolumeResourceRequirements(requests={"storage": Quantity(size)}),
    }
    meta = object_meta("PersistentVolumeClaim", name, namespace, overrides=metadata)
    return apply(
        PersistentVolumeClaim(
            metadata=meta,
            spec=PersistentVolumeClaimSpec(**(fields | spec)),
            status=PersistentVolumeClaimStatus(**({"phase": "Pending"} | dict(status or {}))),
        )
    )


def volume(
    name: str = "disk",
    size: str = "1Gi",
    *,
    metadata: Mapping[str, Any] | None = None,
    phase: str = "Available",
    status: Mapping[str, Any] | None = None,
    **spec: Any,
) -> PersistentVolume:
    """Returns a volume at a path of the host that one node can use at a time."""
    fields: dict[str, Any] = {
        "capacity": {"storage": Quantity(size)},
        "access_modes": ["ReadWriteOnce"],
        "host_path": HostPathVolumeSource(path="/data"),
    }
    return apply(
        PersistentVolume(
            metadata=object_meta("PersistentVolume", name, None, overrides=metadata),
            spec=PersistentVolumeSpec(**(fields | spec)),
            status=PersistentVolumeStatus(**({"phase": phase} | dict(status or {}))),
        )
    )


def storage_class(
    name: str = "fast",
    provisioner: str = "disks.example.com",
    *,
    metadata: Mapping[str, Any] | None = None,
    **fields: Any,
) -> StorageClass:
    meta = object_meta("StorageClass", name, None, overrides=metadata)
    return apply(StorageClass(metadata=meta, provisioner=provisioner, **fields))


def csi_volume(
    name: str = "disk",
    driver: str = "disks.example.com",
    handle: str = "",
    *,
    bound_to: PersistentVolumeClaim | None = None,
    **spec: Any,
) -> PersistentVolume:
    """Returns a volume of a CSI driver, bound to a claim. Its handle is its name if "" is given."""
    source = CSIPersistentVolumeSource(driver=driver, volume_handle=handle or name)
    reference = None
    if bound_to is not None:
        reference = ObjectReference(
            kind="PersistentVolumeClaim",
            namespace=bound_to.namespace,
            name=bound_to.name,
            uid=bound_to.uid,
        )
    fields = {"host_path": None, "csi": source, "claim_ref": reference}
    return volume(name, phase="Bound" if bound_to else "Available", **(fields | spec))


def volume_attachment(
    of: PersistentVolume,
    node: str = "n1",
    *,
    attached: bool = True,
    error: str = "",
    name: str = "",
    metadata: Mapping[str, Any] | None = None,
) -> VolumeAttachment:
    """Returns the VolumeAttachment of a CSI driver's volume to a node."""
    csi = of.spec.csi
    assert csi is not None
    name = name or attachment_name(csi.driver, csi.volume_handle, node)
    source = VolumeAttachmentSource(persistent_volume_name=of.name)
    failure = VolumeError(message=error, time=START) if error else None
    return VolumeAttachment(
        metadata=object_meta("VolumeAttachment", name, None, overrides=metadata),
        spec=VolumeAttachmentSpec(attacher=csi.driver, source=source, node_name=node),
        status=VolumeAttachmentStatus(attached=attached, attach_error=failure),
    )


def csi_driver(name: str = "disks.example.com", **spec: Any) -> CSIDriver:
    meta = object_meta("CSIDriver", name, None)
    return apply(CSIDriver(metadata=meta, spec=CSIDriverSpec(**spec)))
