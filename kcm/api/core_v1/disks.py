"""core/v1: volumes that are disks or shares of storage systems, as tables.

Nothing of kcm mounts them, and Kubernetes has removed the drivers of most, but objects may name
them: so each has upstream's fields, and its type is made from its row.

Source: staging/src/k8s.io/api/core/v1/types.go, Kubernetes 1.33.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from pydantic import Field, create_model

from kcm.api.core_v1.events import ObjectReference
from kcm.api.core_v1.references import LocalObjectReference, SecretReference
from kcm.apimachinery.base import Bool, Int32, Model, StringMap

# By the attribute of Volume and of PersistentVolumeSpec: the name of the type, its
# description and its fields. A field is a string unless it names its type, and may be absent if a
# `?` follows.
_DISKS = {
    "gce_persistent_disk": (
        "GCEPersistentDiskVolumeSource", "A disk of Google Compute Engine.",
        "pd_name fs_type? partition:Int32? read_only:Bool?",
    ),
    "aws_elastic_block_store": (
        "AWSElasticBlockStoreVolumeSource", "A disk of Amazon's Elastic Block Store.",
        "volume_id fs_type? partition:Int32? read_only:Bool?",
    ),
    "iscsi": (
        "ISCSIVolumeSource", "A disk of an iSCSI target.",
        "target_portal iqn lun:Int32 iscsi_interface? fs_type? read_only:Bool? portals:Strings? "
        "chap_auth_discovery:Bool? chap_auth_session:Bool? secret_ref:Secret? initiator_name?",
    ),
    "glusterfs": (
        "GlusterfsVolumeSource", "A Glusterfs volume.",
        "endpoints path read_only:Bool?",
    ),
    "rbd": (
        "RBDVolumeSource", "A RADOS block device.",
        "monitors:Strings image fs_type? pool? user? keyring? secret_ref:Secret? read_only:Bool?",
    ),
    "flex_volume": (
        "FlexVolumeSource", "A volume of an exec-based plugin.",
        "driver fs_type? secret_ref:Secret? read_only:Bool? options:StringMap?",
    ),
    "cinder": (
        "CinderVolumeSource", "A disk of OpenStack's Cinder.",
        "volume_id fs_type? read_only:Bool? secret_ref:Secret?",
    ),
    "cephfs": (
        "CephFSVolumeSource", "A Ceph file system.",
        "monitors:Strings path? user? secret_file? secret_ref:Secret? read_only:Bool?",
    ),
    "flocker": (
        "FlockerVolumeSource", "A Flocker volume.",
        "dataset_name? dataset_uuid?",
    ),
    "fc": (
        "FCVolumeSource", "A Fibre Channel disk.",
        "target_wwns:Strings? lun:Int32? fs_type? read_only:Bool? wwids:Strings?",
    ),
    "azure_file": (
        "AzureFileVolumeSource", "A share of Azure Files.",
        "secret_name share_name read_only:Bool?",
    ),
    "vsphere_volume": (
        "VsphereVirtualDiskVolumeSource", "A disk of vSphere.",
        "volume_path fs_type? storage_policy_name? storage_policy_id?",
    ),
    "quobyte": (
        "QuobyteVolumeSource", "A Quobyte volume.",
        "registry volume read_only:Bool? user? group? tenant?",
    ),
    "azure_disk": (
        "AzureDiskVolumeSource", "A data disk of Azure.",
        "disk_name disk_uri caching_mode? fs_type? read_only:Bool? kind?",
    ),
    "photon_persistent_disk": (
        "PhotonPersistentDiskVolumeSource", "A disk of Photon Controller.",
        "pd_id fs_type?",
    ),
    "portworx_volume": (
        "PortworxVolumeSource", "A Portworx volume.",
        "volume_id fs_type? read_only:Bool?",
    ),
    "scale_io": (
        "ScaleIOVolumeSource", "A ScaleIO volume.",
        "gateway system secret_ref:Secret? ssl_enabled:Bool? protection_domain? storage_pool? "
        "storage_mode? volume_name? fs_type? read_only:Bool?",
    ),
    "storageos": (
        "StorageOSVolumeSource", "A StorageOS volume.",
        "volume_name? volume_namespace? fs_type? read_only:Bool? secret_ref:Secret?",
    ),
}  # fmt: skip
_ONLY_OF_PODS = {
    "git_repo": (
        "GitRepoVolumeSource", "A checkout of a git repository. Deprecated.",
        "repository revision? directory?",
    ),
}  # fmt: skip
# What the types of a PersistentVolume have besides. These, and those that refer to Secrets, differ
# from the types of pods, whose Secrets are all in the pod's namespace.
_MORE_IN_VOLUMES = {"glusterfs": " endpoints_namespace?", "azure_file": " secret_namespace?"}
_TYPES: Mapping[str, tuple[Any, Any]] = {  # by name: the type, and the default of a required field
    "": (str, ""),
    "Bool": (Bool, False),
    "Int32": (Int32, 0),
    "Strings": (list[str], Field(default_factory=list)),
    "StringMap": (StringMap, Field(default_factory=dict)),
}


def _make_type(name: str, description: str, row: str, secret: type[Model]) -> type[Model]:
    fields: dict[str, Any] = dict(_make_fields(row, secret))
    return create_model(name, __base__=Model, __module__=__name__, __doc__=description, **fields)


def _make_fields(row: str, secret: type[Model]) -> Iterator[tuple[str, Any]]:
    """Yields the names of a row's fields, each with its type and default."""
    for field in row.split():
        name, _, kind = field.removesuffix("?").partition(":")
        type_, default = (secret, None) if kind == "Secret" else _TYPES[kind]
        yield name, (type_ | None, None) if field.endswith("?") else (type_, default)


def _make_holder(name: str, types: Mapping[str, type[Model]]) -> type[Model]:
    """Returns a struct with an attribute for each of these types, which may be absent."""
    fields: dict[str, Any] = {attribute: (one | None, None) for attribute, one in types.items()}
    return create_model(name, __base__=Model, __module__=__name__, **fields)


def _make_volume_type(attribute: str) -> type[Model]:
    """Returns the type of a PersistentVolume's disk."""
    name, description, row = _DISKS[attribute]
    more = _MORE_IN_VOLUMES.get(attribute, "")
    if not more and ":Secret" not in row:
        return _POD_TYPES[attribute]
    secret = ObjectReference if attribute == "storageos" else SecretReference
    persistent = name.replace("VolumeSource", "PersistentVolumeSource")
    return _make_type(persistent, description, row + more, secret)


_POD_TYPES = {
    attribute: _make_type(*row, LocalObjectReference)
    for attribute, row in (_DISKS | _ONLY_OF_PODS).items()
}

if TYPE_CHECKING:
    # The disks of a volume are read by their names: see `Volume.sources`.
    PodDisks = Model
    PersistentDisks = Model
else:
    PodDisks = _make_holder("PodDisks", _POD_TYPES)
    PersistentDisks = _make_holder(
        "PersistentDisks", {attribute: _make_volume_type(attribute) for attribute in _DISKS}
    )
