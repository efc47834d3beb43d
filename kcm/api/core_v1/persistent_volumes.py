"""core/v1: PersistentVolume, its sources, spec and status.

Source: staging/src/k8s.io/api/core/v1/types.go, Kubernetes 1.33.
"""

from __future__ import annotations

from pydantic import Field

from kcm.api.core_v1.affinity import NodeSelector
from kcm.api.core_v1.events import ObjectReference
from kcm.api.core_v1.references import SecretReference
from kcm.api.core_v1.volume_sources import (
    AWSElasticBlockStoreVolumeSource,
    AzureDiskVolumeSource,
    FCVolumeSource,
    FlockerVolumeSource,
    GCEPersistentDiskVolumeSource,
    HostPathVolumeSource,
    NFSVolumeSource,
    PhotonPersistentDiskVolumeSource,
    PortworxVolumeSource,
    QuobyteVolumeSource,
    VsphereVirtualDiskVolumeSource,
)
from kcm.apimachinery.base import Bool, Int32, Model, StringMap
from kcm.apimachinery.meta_v1 import KubeObject
from kcm.apimachinery.quantity import ResourceList
from kcm.apimachinery.times import Time


class GlusterfsPersistentVolumeSource(Model):
    """A Glusterfs volume."""

    endpoints: str = ""
    path: str = ""
    read_only: Bool | None = None
    endpoints_namespace: str | None = None


class RBDPersistentVolumeSource(Model):
    """A RADOS block device."""

    monitors: list[str] = Field(default_factory=list)
    image: str = ""
    fs_type: str | None = None
    pool: str | None = None
    user: str | None = None
    keyring: str | None = None
    secret_ref: SecretReference | None = None
    read_only: Bool | None = None


class ISCSIPersistentVolumeSource(Model):
    """A disk of an iSCSI target."""

    target_portal: str = ""
    iqn: str = ""
    lun: Int32 = 0
    iscsi_interface: str | None = None
    fs_type: str | None = None
    read_only: Bool | None = None
    portals: list[str] | None = None
    chap_auth_discovery: Bool | None = None
    chap_auth_session: Bool | None = None
    secret_ref: SecretReference | None = None
    initiator_name: str | None = None


class CinderPersistentVolumeSource(Model):
    """A disk of OpenStack's Cinder."""

    volume_id: str = ""
    fs_type: str | None = None
    read_only: Bool | None = None
    secret_ref: SecretReference | None = None


class CephFSPersistentVolumeSource(Model):
    """A Ceph file system."""

    monitors: list[str] = Field(default_factory=list)
    path: str | None = None
    user: str | None = None
    secret_file: str | None = None
    secret_ref: SecretReference | None = None
    read_only: Bool | None = None


class FlexPersistentVolumeSource(Model):
    """A volume of an exec-based plugin."""

    driver: str = ""
    fs_type: str | None = None
    secret_ref: SecretReference | None = None
    read_only: Bool | None = None
    options: StringMap | None = None


class AzureFilePersistentVolumeSource(Model):
    """A share of Azure Files."""

    secret_name: str = ""
    share_name: str = ""
    read_only: Bool | None = None
    secret_namespace: str | None = None


class ScaleIOPersistentVolumeSource(Model):
    """A volume of a ScaleIO system."""

    gateway: str = ""
    system: str = ""
    secret_ref: SecretReference | None = None
    ssl_enabled: Bool | None = None
    protection_domain: str | None = None
    storage_pool: str | None = None
    storage_mode: str | None = None
    volume_name: str | None = None
    fs_type: str | None = None
    read_only: Bool | None = None


class LocalVolumeSource(Model):
    """A disk or directory of one node."""

    path: str = ""
    fs_type: str | None = None


class StorageOSPersistentVolumeSource(Model):
    """A StorageOS volume."""

    volume_name: str | None = None
    volume_namespace: str | None = None
    fs_type: str | None = None
    read_only: Bool | None = None
    secret_ref: ObjectReference | None = None


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


class PersistentVolumeSpec(Model):
    """The storage behind a volume, its size and how it can be mounted.

    Exactly one source is set.
    """

    capacity: ResourceList | None = None
    gce_persistent_disk: GCEPersistentDiskVolumeSource | None = None
    aws_elastic_block_store: AWSElasticBlockStoreVolumeSource | None = None
    host_path: HostPathVolumeSource | None = None
    glusterfs: GlusterfsPersistentVolumeSource | None = None
    nfs: NFSVolumeSource | None = None
    rbd: RBDPersistentVolumeSource | None = None
    iscsi: ISCSIPersistentVolumeSource | None = None
    cinder: CinderPersistentVolumeSource | None = None
    cephfs: CephFSPersistentVolumeSource | None = None
    fc: FCVolumeSource | None = None
    flocker: FlockerVolumeSource | None = None
    flex_volume: FlexPersistentVolumeSource | None = None
    azure_file: AzureFilePersistentVolumeSource | None = None
    vsphere_volume: VsphereVirtualDiskVolumeSource | None = None
    quobyte: QuobyteVolumeSource | None = None
    azure_disk: AzureDiskVolumeSource | None = None
    photon_persistent_disk: PhotonPersistentDiskVolumeSource | None = None
    portworx_volume: PortworxVolumeSource | None = None
    scale_io: ScaleIOPersistentVolumeSource | None = None
    local: LocalVolumeSource | None = None
    storageos: StorageOSPersistentVolumeSource | None = None
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
