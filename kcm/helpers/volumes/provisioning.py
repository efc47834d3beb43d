"""The volume that a provisioner makes for a claim."""

from __future__ import annotations

from kcm.api.core_v1 import PersistentVolumeClaim
from kcm.api.core_v1.persistent_volumes import (
    CSIPersistentVolumeSource,
    PersistentVolumeSpec,
    VolumeNodeAffinity,
)
from kcm.api.storage_v1 import StorageClass
from kcm.helpers.volumes.binding import reference_to, requested


def provisioned_name(claim: PersistentVolumeClaim) -> str:
    """Returns the name that a claim's volume gets, and by which its driver knows it."""
    return f"pvc-{claim.uid}"


def provisioned_spec(
    claim: PersistentVolumeClaim,
    storage_class: StorageClass,
    driver: str,
    affinity: VolumeNodeAffinity | None = None,
) -> PersistentVolumeSpec:
    """Returns the spec of a CSI driver's volume that is what the claim asks for, reserved for it.

    Every node can reach a volume without affinity.
    """
    return PersistentVolumeSpec(
        capacity={"storage": requested(claim)},
        access_modes=claim.spec.access_modes,
        csi=CSIPersistentVolumeSource(driver=driver, volume_handle=provisioned_name(claim)),
        claim_ref=reference_to(claim),
        persistent_volume_reclaim_policy=storage_class.reclaim_policy,
        storage_class_name=storage_class.name,
        mount_options=storage_class.mount_options,
        volume_mode=claim.spec.volume_mode,
        node_affinity=affinity,
        volume_attributes_class_name=claim.spec.volume_attributes_class_name,
    )
