"""Builds claims, volumes and storage classes for tests, as `kcm.testing.builders` does."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kcm.api.core_v1 import (
    PersistentVolume,
    PersistentVolumeClaim,
    PersistentVolumeClaimSpec,
    PersistentVolumeClaimStatus,
)
from kcm.api.core_v1.persistent_volumes import PersistentVolumeSpec, PersistentVolumeStatus
from kcm.api.core_v1.volume_claims import VolumeResourceRequirements
from kcm.api.core_v1.volume_sources import HostPathVolumeSource
from kcm.api.storage_v1 import StorageClass
from kcm.apimachinery.quantity import Quantity
from kcm.defaults import apply
from kcm.testing.builders import object_meta


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
