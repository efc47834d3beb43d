"""core/v1: ConfigMap, Secret and ServiceAccount, which pods name.

Source: staging/src/k8s.io/api/core/v1/types.go, Kubernetes 1.33.
"""

from __future__ import annotations

from typing import Annotated

from kcm.api.core_v1.events import ObjectReference
from kcm.api.core_v1.references import LocalObjectReference
from kcm.apimachinery.base import Bool, MergeKey, StringMap
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


class ServiceAccount(KubeObject):
    """An identity for the processes in pods, as which they authenticate to the API server."""

    api_version: str = "v1"
    kind: str = "ServiceAccount"
    secrets: Annotated[list[ObjectReference] | None, MergeKey("name")] = None
    image_pull_secrets: list[LocalObjectReference] | None = None
    automount_service_account_token: Bool | None = None
