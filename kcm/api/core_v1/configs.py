"""core/v1: ConfigMap and Secret.

Source: staging/src/k8s.io/api/core/v1/types.go, Kubernetes 1.33.
"""

from __future__ import annotations

from kcm.apimachinery.base import Bool, StringMap
from kcm.apimachinery.meta_v1 import KubeObject


class ConfigMap(KubeObject):
    """Configuration data for pods: text in `data`, bytes as base64 in `binaryData`."""

    api_version: str = "v1"
    kind: str = "ConfigMap"
    data: StringMap | None = None
    binary_data: StringMap | None = None
    immutable: Bool | None = None


class Secret(KubeObject):
    """Confidential data: bytes as base64 in `data`.

    `stringData` takes plain text and is write-only: defaulting moves it into `data`.
    """

    api_version: str = "v1"
    kind: str = "Secret"
    data: StringMap | None = None
    string_data: StringMap | None = None
    type: str | None = None
    immutable: Bool | None = None
