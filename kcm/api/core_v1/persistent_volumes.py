"""core/v1: PersistentVolume, its sources, spec and status.

Source: staging/src/k8s.io/api/core/v1/types.go, Kubernetes 1.33.
"""

from __future__ import annotations

from pydantic import Field

from kcm.api.core_v1.affinity import NodeSelector
from kcm.api.core_v1.disks import PersistentDisks
from kcm.api.core_v1.events import ObjectReference
from kcm.api.core_v1.references import SecretReference
from kcm.api.core_v1.volume_sources import HostPathVolumeSource, NFSVolumeSource
from kcm.apimachinery.base import Bool, Model, StringMap
from kcm.apimachinery.meta_v1 import KubeObject, Time
from kcm.apimachinery.quantity import ResourceList


class LocalVolumeSource(Model):
    """A disk or directory of one node."""

    path: str = ""
    fs_type: str | None = None


class CSIPersistentVolumeSource(Model):
    """A volume that a CSI driver provides."""

    driver: str = ""
    volume_handle: str = ""
    read_only: Bool | None = None
    fs_type: str | None = None
    volume_attributes: StringMap | None = None
    controller_publish_secret_ref: SecretReference | None = None
    node_stage_secret_ref: SecretReference | None = None
    node_publish_secret_ref: SecretReference | None = None
    controller_expand_secret_ref: SecretReference | None = None
    node_expand_secret_ref: SecretReference | None = None


class VolumeNodeAffinity(Model):
    """The nodes from which a volume can be reached."""

    required: NodeSelector | None = None


class PersistentVolumeSpec(PersistentDisks):
    """The storage behind a volume, its size and how it can be mounted.

    Exactly one source is set; those of `kcm.api.core_v1.disks` are attributes as well.
    """

    capacity: ResourceList | None = None
    host_path: HostPathVolumeSource | None = None
    nfs: NFSVolumeSource | None = None
    local: LocalVolumeSource | None = None
    csi: CSIPersistentVolumeSource | None = None
    access_modes: list[str] | None = None
    claim_ref: ObjectReference | None = None
    persistent_volume_reclaim_policy: str | None = None
    storage_class_name: str | None = None
    mount_options: list[str] | None = None
    volume_mode: str | None = None
    node_affinity: VolumeNodeAffinity | None = None
    volume_attributes_class_name: str | None = None


class PersistentVolumeStatus(Model):
    """The phase of a volume: Pending, Available, Bound, Released or Failed."""

    phase: str | None = None
    message: str | None = None
    reason: str | None = None
    last_phase_transition_time: Time | None = None


class PersistentVolume(KubeObject):
    """Storage that exists independently of pods."""

    api_version: str = "v1"
    kind: str = "PersistentVolume"
    spec: PersistentVolumeSpec = Field(default_factory=PersistentVolumeSpec)
    status: PersistentVolumeStatus = Field(default_factory=PersistentVolumeStatus)
