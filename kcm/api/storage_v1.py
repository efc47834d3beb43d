"""storage.k8s.io/v1: storage classes, attachments, and what CSI drivers say of themselves.

Source: staging/src/k8s.io/api/storage/v1/types.go, Kubernetes 1.33.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Annotated

from pydantic import Field

from kcm.api.core_v1 import PersistentVolume, PersistentVolumeClaim, Pod
from kcm.api.core_v1.affinity import TopologySelectorTerm
from kcm.api.core_v1.persistent_volumes import PersistentVolumeSpec
from kcm.api.core_v1.volumes import Volume
from kcm.apimachinery.base import Bool, Int32, Int64, MergeKey, MergeSet, Model, StringMap
from kcm.apimachinery.meta_v1 import KubeObject, LabelSelector, Time
from kcm.apimachinery.quantity import Quantity


class StorageClass(KubeObject):
    """A class of volumes, and the provisioner that creates them."""

    api_version: str = "storage.k8s.io/v1"
    kind: str = "StorageClass"
    provisioner: str = ""
    parameters: StringMap | None = None
    reclaim_policy: str | None = None
    mount_options: list[str] | None = None
    allow_volume_expansion: Bool | None = None
    volume_binding_mode: str | None = None
    allowed_topologies: list[TopologySelectorTerm] | None = None


class VolumeAttachmentSource(Model):
    """The volume to attach: exactly one field is set."""

    persistent_volume_name: str | None = None
    inline_volume_spec: PersistentVolumeSpec | None = None


class VolumeAttachmentSpec(Model):
    """Which driver shall attach which volume to which node."""

    attacher: str = ""
    source: VolumeAttachmentSource = Field(default_factory=VolumeAttachmentSource)
    node_name: str = ""


class VolumeError(Model):
    """The last error of attaching or detaching a volume."""

    time: Time | None = None
    message: str | None = None
    error_code: Int32 | None = None


class VolumeAttachmentStatus(Model):
    """Whether the volume is attached, and what went wrong."""

    attached: Bool = False
    attachment_metadata: StringMap | None = None
    attach_error: VolumeError | None = None
    detach_error: VolumeError | None = None


class VolumeAttachment(KubeObject):
    """The wish to attach a volume to a node, and how far it has come."""

    api_version: str = "storage.k8s.io/v1"
    kind: str = "VolumeAttachment"
    spec: VolumeAttachmentSpec = Field(default_factory=VolumeAttachmentSpec)
    status: VolumeAttachmentStatus = Field(default_factory=VolumeAttachmentStatus)


class TokenRequest(Model):
    """A service account's token that a CSI driver wants for each pod."""

    audience: str = ""
    expiration_seconds: Int64 | None = None


class CSIDriverSpec(Model):
    """What a CSI driver can do and what it needs."""

    attach_required: Bool | None = None
    pod_info_on_mount: Bool | None = None
    volume_lifecycle_modes: Annotated[list[str] | None, MergeSet(patches=False)] = None
    storage_capacity: Bool | None = None
    fs_group_policy: str | None = None
    token_requests: list[TokenRequest] | None = None
    requires_republish: Bool | None = None
    se_linux_mount: Bool | None = None
    node_allocatable_update_period_seconds: Int64 | None = None
    service_account_token_in_secrets: Bool | None = None
    prevent_pod_scheduling_if_missing: Bool | None = None


class VolumeAttributesClass(KubeObject):
    """Attributes that a driver can give to a volume that exists."""

    api_version: str = "storage.k8s.io/v1"
    kind: str = "VolumeAttributesClass"
    driver_name: str = ""
    parameters: StringMap | None = None


class CSIDriver(KubeObject):
    """A CSI driver of the cluster. Its name is the name that the driver gives itself."""

    api_version: str = "storage.k8s.io/v1"
    kind: str = "CSIDriver"
    spec: CSIDriverSpec = Field(default_factory=CSIDriverSpec)


class VolumeNodeResources(Model):
    """How many volumes of a driver a node can have."""

    count: Int32 | None = None


class CSINodeDriver(Model):
    """A CSI driver that runs on a node."""

    name: str = ""
    node_id: str = Field(default="", alias="nodeID")
    topology_keys: list[str] | None = None
    allocatable: VolumeNodeResources | None = None


class CSINodeSpec(Model):
    """The CSI drivers of a node."""

    drivers: Annotated[list[CSINodeDriver], MergeKey("name")] = Field(default_factory=list)


class CSINode(KubeObject):
    """What the CSI drivers of a node say of it. It has the node's name."""

    api_version: str = "storage.k8s.io/v1"
    kind: str = "CSINode"
    spec: CSINodeSpec = Field(default_factory=CSINodeSpec)


class CSIStorageCapacity(KubeObject):
    """How much storage of a class is left in a part of the cluster."""

    api_version: str = "storage.k8s.io/v1"
    kind: str = "CSIStorageCapacity"
    node_topology: LabelSelector | None = None
    storage_class_name: str = ""
    capacity: Quantity | None = None
    maximum_volume_size: Quantity | None = None


# --- What claims, volumes and classes say of storage classes.
#
# Source: staging/src/k8s.io/component-helpers/storage/volume/helpers.go and
# pkg/volume/util/storageclass.go, Kubernetes 1.33.


CLASS_ANNOTATION = "volume.beta.kubernetes.io/storage-class"
IS_DEFAULT = "storageclass.kubernetes.io/is-default-class"
IS_DEFAULT_BETA = "storageclass.beta.kubernetes.io/is-default-class"
NO_PROVISIONER = "kubernetes.io/no-provisioner"
WAIT_FOR_FIRST_CONSUMER = "WaitForFirstConsumer"
_LONG_AGO = datetime.min.replace(tzinfo=UTC)


def class_of_claim(claim: PersistentVolumeClaim) -> str:
    """Returns the name of the claim's class, "" for none."""
    named = claim.annotations.get(CLASS_ANNOTATION)
    return named if named is not None else claim.spec.storage_class_name or ""


def has_class(claim: PersistentVolumeClaim) -> bool:
    """Reports whether the claim names a class, be it the empty one."""
    return CLASS_ANNOTATION in claim.annotations or claim.spec.storage_class_name is not None


def class_of_volume(volume: PersistentVolume) -> str:
    """Returns the name of the volume's class, "" for none."""
    named = volume.annotations.get(CLASS_ANNOTATION)
    return named if named is not None else volume.spec.storage_class_name or ""


def is_default(storage_class: StorageClass) -> bool:
    """Reports whether claims that name no class get this one."""
    annotations = storage_class.annotations
    return "true" in (annotations.get(IS_DEFAULT), annotations.get(IS_DEFAULT_BETA))


def default_of(classes: Iterable[StorageClass]) -> StorageClass | None:
    """Returns the default class, None if there is none.

    Of several it is the newest, and of several of one age the first by name.
    """
    defaults = sorted((c for c in classes if is_default(c)), key=lambda c: c.name)
    newest = max((c.metadata.creation_timestamp or _LONG_AGO for c in defaults), default=_LONG_AGO)
    return next(
        (c for c in defaults if (c.metadata.creation_timestamp or _LONG_AGO) == newest), None
    )


def waits_for_consumer(storage_class: StorageClass | None) -> bool:
    """Reports whether claims of the class are bound only when a pod that uses them is scheduled."""
    return (
        storage_class is not None and storage_class.volume_binding_mode == WAIT_FOR_FIRST_CONSUMER
    )


# --- The volume claims that pods use and that volumes are for.
#
# Source: staging/src/k8s.io/component-helpers/storage/ephemeral/ephemeral.go and PodPVCIndexFunc in
# pkg/controller/volume/common/common.go, Kubernetes 1.33.


def claim_name(pod: Pod, volume: Volume) -> str:
    """Returns the name of the claim that the volume is, "" if it is none.

    An ephemeral volume's claim is named after the pod and the volume.
    """
    if volume.persistent_volume_claim is not None:
        return volume.persistent_volume_claim.claim_name
    return f"{pod.name}-{volume.name}" if volume.ephemeral is not None else ""


def claim_keys(pod: Pod) -> list[str]:
    """Returns the keys (`namespace/name`) of the claims that the pod's volumes are."""
    names = [claim_name(pod, volume) for volume in pod.spec.volumes or ()]
    return [f"{pod.namespace}/{name}" for name in dict.fromkeys(names) if name]


def claim_key_of(volume: PersistentVolume) -> str:
    """Returns the key of the claim that the volume is for, "" if it is for none."""
    reference = volume.spec.claim_ref
    return "" if reference is None else f"{reference.namespace or ''}/{reference.name or ''}"
