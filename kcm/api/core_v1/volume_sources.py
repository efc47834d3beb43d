"""core/v1: the sources of a pod's volumes.

Source: staging/src/k8s.io/api/core/v1/types.go, Kubernetes 1.33.
"""

from __future__ import annotations

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


class PersistentVolumeClaimVolumeSource(Model):
    """The volume that is bound to a claim in the pod's namespace."""

    claim_name: str = ""
    read_only: Bool | None = None


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


class ConfigMapVolumeSource(Model):
    """The keys of a ConfigMap as files."""

    name: str | None = None
    items: list[KeyToPath] | None = None
    default_mode: Int32 | None = None
    optional: Bool | None = None


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
