"""storage.k8s.io/v1beta1: VolumeAttributesClass.

Source: staging/src/k8s.io/api/storage/v1beta1/types.go, Kubernetes 1.33.
"""

from __future__ import annotations

from kcm.apimachinery.base import StringMap
from kcm.apimachinery.meta_v1 import KubeObject


class VolumeAttributesClass(KubeObject):
    """Attributes that a driver can give to a volume that exists."""

    api_version: str = "storage.k8s.io/v1beta1"
    kind: str = "VolumeAttributesClass"
    driver_name: str = ""
    parameters: StringMap | None = None
