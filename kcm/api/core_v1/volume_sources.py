"""core/v1: the sources of a pod's volumes.

Source: staging/src/k8s.io/api/core/v1/types.go, Kubernetes 1.33.
"""

from __future__ import annotations

from pydantic import Field

from kcm.api.core_v1.environment import ObjectFieldSelector, ResourceFieldSelector
from kcm.api.core_v1.references import LocalObjectReference
from kcm.apimachinery.base import Bool, Int32, Model, StringMap
from kcm.apimachinery.quantity import Quantity


class KeyToPath(Model):
    """A key of a ConfigMap or Secret, and the path of the file that holds its value."""

    key: str = ""
    path: str = ""
    mode: Int32 | None = None


class HostPathVolumeSource(Model):
    """A file or directory of the node."""

    path: str = ""
    type: str | None = None


class EmptyDirVolumeSource(Model):
    """A directory that is empty at first and is removed with the pod."""

    medium: str | None = None
    size_limit: Quantity | None = None


class GCEPersistentDiskVolumeSource(Model):
    """A disk of Google Compute Engine."""

    pd_name: str = ""
    fs_type: str | None = None
    partition: Int32 | None = None
    read_only: Bool | None = None


class AWSElasticBlockStoreVolumeSource(Model):
    """A disk of Amazon's Elastic Block Store."""

    volume_id: str = ""
    fs_type: str | None = None
    partition: Int32 | None = None
    read_only: Bool | None = None


class GitRepoVolumeSource(Model):
    """A checkout of a git repository. Deprecated."""

    repository: str = ""
    revision: str | None = None
    directory: str | None = None


class SecretVolumeSource(Model):
    """The keys of a Secret as files."""

    secret_name: str | None = None
    items: list[KeyToPath] | None = None
    default_mode: Int32 | None = None
    optional: Bool | None = None


class NFSVolumeSource(Model):
    """A share of an NFS server."""

    server: str = ""
    path: str = ""
    read_only: Bool | None = None


class ISCSIVolumeSource(Model):
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
    secret_ref: LocalObjectReference | None = None
    initiator_name: str | None = None


class GlusterfsVolumeSource(Model):
    """A Glusterfs volume."""

    endpoints: str = ""
    path: str = ""
    read_only: Bool | None = None


class PersistentVolumeClaimVolumeSource(Model):
    """The volume that is bound to a claim in the pod's namespace."""

    claim_name: str = ""
    read_only: Bool | None = None


class RBDVolumeSource(Model):
    """A RADOS block device."""

    monitors: list[str] = Field(default_factory=list)
    image: str = ""
    fs_type: str | None = None
    pool: str | None = None
    user: str | None = None
    keyring: str | None = None
    secret_ref: LocalObjectReference | None = None
    read_only: Bool | None = None


class FlexVolumeSource(Model):
    """A volume of an exec-based plugin."""

    driver: str = ""
    fs_type: str | None = None
    secret_ref: LocalObjectReference | None = None
    read_only: Bool | None = None
    options: StringMap | None = None


class CinderVolumeSource(Model):
    """A disk of OpenStack's Cinder."""

    volume_id: str = ""
    fs_type: str | None = None
    read_only: Bool | None = None
    secret_ref: LocalObjectReference | None = None


class CephFSVolumeSource(Model):
    """A Ceph file system."""

    monitors: list[str] = Field(default_factory=list)
    path: str | None = None
    user: str | None = None
    secret_file: str | None = None
    secret_ref: LocalObjectReference | None = None
    read_only: Bool | None = None


class FlockerVolumeSource(Model):
    """A Flocker volume."""

    dataset_name: str | None = None
    dataset_uuid: str | None = None


class DownwardAPIVolumeFile(Model):
    """A file with the value of a field of the pod, or of a container's limit or request."""

    path: str = ""
    field_ref: ObjectFieldSelector | None = None
    resource_field_ref: ResourceFieldSelector | None = None
    mode: Int32 | None = None


class DownwardAPIVolumeSource(Model):
    """Fields of the pod as files."""

    items: list[DownwardAPIVolumeFile] | None = None
    default_mode: Int32 | None = None


class FCVolumeSource(Model):
    """A Fibre Channel disk."""

    target_wwns: list[str] | None = None
    lun: Int32 | None = None
    fs_type: str | None = None
    read_only: Bool | None = None
    wwids: list[str] | None = None


class AzureFileVolumeSource(Model):
    """A share of Azure Files."""

    secret_name: str = ""
    share_name: str = ""
    read_only: Bool | None = None


class ConfigMapVolumeSource(Model):
    """The keys of a ConfigMap as files."""

    name: str | None = None
    items: list[KeyToPath] | None = None
    default_mode: Int32 | None = None
    optional: Bool | None = None


class VsphereVirtualDiskVolumeSource(Model):
    """A disk of vSphere."""

    volume_path: str = ""
    fs_type: str | None = None
    storage_policy_name: str | None = None
    storage_policy_id: str | None = None


class QuobyteVolumeSource(Model):
    """A Quobyte volume."""

    registry: str = ""
    volume: str = ""
    read_only: Bool | None = None
    user: str | None = None
    group: str | None = None
    tenant: str | None = None


class AzureDiskVolumeSource(Model):
    """A data disk of Azure."""

    disk_name: str = ""
    disk_uri: str = ""
    caching_mode: str | None = None
    fs_type: str | None = None
    read_only: Bool | None = None
    kind: str | None = None


class PhotonPersistentDiskVolumeSource(Model):
    """A disk of Photon Controller."""

    pd_id: str = ""
    fs_type: str | None = None


class PortworxVolumeSource(Model):
    """A Portworx volume."""

    volume_id: str = ""
    fs_type: str | None = None
    read_only: Bool | None = None


class ScaleIOVolumeSource(Model):
    """A ScaleIO volume."""

    gateway: str = ""
    system: str = ""
    secret_ref: LocalObjectReference | None = None
    ssl_enabled: Bool | None = None
    protection_domain: str | None = None
    storage_pool: str | None = None
    storage_mode: str | None = None
    volume_name: str | None = None
    fs_type: str | None = None
    read_only: Bool | None = None


class StorageOSVolumeSource(Model):
    """A StorageOS volume."""

    volume_name: str | None = None
    volume_namespace: str | None = None
    fs_type: str | None = None
    read_only: Bool | None = None
    secret_ref: LocalObjectReference | None = None


class CSIVolumeSource(Model):
    """A volume that a CSI driver creates for the pod."""

    driver: str = ""
    read_only: Bool | None = None
    fs_type: str | None = None
    volume_attributes: StringMap | None = None
    node_publish_secret_ref: LocalObjectReference | None = None


class ImageVolumeSource(Model):
    """The files of a container image."""

    reference: str | None = None
    pull_policy: str | None = None
