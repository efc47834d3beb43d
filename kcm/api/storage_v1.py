"""storage.k8s.io/v1: StorageClass.

Source: staging/src/k8s.io/api/storage/v1/types.go, Kubernetes 1.33.
"""

from __future__ import annotations

from kcm.api.core_v1.affinity import TopologySelectorTerm
from kcm.apimachinery.base import Bool, StringMap
from kcm.apimachinery.meta_v1 import KubeObject


class StorageClass(KubeObject):
    """A class of volumes, and the provisioner that creates them. kcm provisions no volumes."""

    api_version: str = "storage.k8s.io/v1"
    kind: str = "StorageClass"
    provisioner: str = ""
    parameters: StringMap | None = None
    reclaim_policy: str | None = None
    mount_options: list[str] | None = None
    allow_volume_expansion: Bool | None = None
    volume_binding_mode: str | None = None
    allowed_topologies: list[TopologySelectorTerm] | None = None
