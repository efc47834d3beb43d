"""Builds the objects of the simulated CSI driver."""

from __future__ import annotations

from kcm.api.core_v1 import Node, PersistentVolume, PersistentVolumeClaim
from kcm.api.simulated import DRIVER, PROVISIONER_FINALIZER, STORAGE_CLASS
from kcm.api.storage_v1 import (
    WAIT_FOR_FIRST_CONSUMER,
    CSIDriver,
    CSIDriverSpec,
    CSINode,
    CSINodeDriver,
    CSINodeSpec,
    StorageClass,
    VolumeNodeResources,
)
from kcm.apimachinery.meta_v1 import KubeObject, ObjectMeta, OwnerReference
from kcm.helpers.volumes.binding import PROVISIONED_BY
from kcm.helpers.volumes.provisioning import provisioned_name, provisioned_spec


def cluster_objects() -> tuple[KubeObject, ...]:
    """Returns the CSIDriver, and the StorageClass, which is not the default one."""
    driver = CSIDriver(metadata=ObjectMeta(name=DRIVER), spec=CSIDriverSpec(attach_required=True))
    storage_class = StorageClass(
        metadata=ObjectMeta(name=STORAGE_CLASS),
        provisioner=DRIVER,
        reclaim_policy="Delete",
        volume_binding_mode=WAIT_FOR_FIRST_CONSUMER,
    )
    return driver, storage_class


def csi_node(node: Node, limit: int, before: CSINode | None) -> CSINode:
    """Returns the CSINode of a node, which can have `limit` volumes of the driver.

    Other drivers in `before` are kept.
    """
    resources = VolumeNodeResources(count=limit)
    own = CSINodeDriver(name=DRIVER, node_id=node.name, allocatable=resources)
    owner = OwnerReference(api_version="v1", kind="Node", name=node.name, uid=node.uid)
    others = before.spec.drivers if before is not None else ()
    return CSINode(
        metadata=ObjectMeta(name=node.name, owner_references=[owner]),
        spec=CSINodeSpec(drivers=[*(d for d in others if d.name != DRIVER), own]),
    )


def is_same_csi_node(new: CSINode, old: CSINode) -> bool:
    """Reports whether both are of one node, and say the same of its drivers."""
    return new.spec == old.spec and new.metadata.owner_references == old.metadata.owner_references


def provisioned_volume(
    claim: PersistentVolumeClaim, storage_class: StorageClass
) -> PersistentVolume:
    """Returns the volume for a claim, reserved for it. Every node can reach it."""
    meta = ObjectMeta(
        name=provisioned_name(claim),
        annotations={PROVISIONED_BY: DRIVER},
        finalizers=[PROVISIONER_FINALIZER],
    )
    return PersistentVolume(metadata=meta, spec=provisioned_spec(claim, storage_class, DRIVER))
