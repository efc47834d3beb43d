"""core/v1: ComponentStatus, which is computed for each request and never stored.

Source: staging/src/k8s.io/api/core/v1/types.go, Kubernetes 1.33.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from kcm.apimachinery.base import MergeKey, Model
from kcm.apimachinery.meta_v1 import KubeObject


class ComponentCondition(Model):
    """Whether a component works, and what is wrong with it."""

    type: str = ""
    status: str = ""
    message: str | None = None
    error: str | None = None


class ComponentStatus(KubeObject):
    """The state of a part of the control plane. Deprecated since Kubernetes 1.19."""

    api_version: str = "v1"
    kind: str = "ComponentStatus"
    conditions: Annotated[list[ComponentCondition], MergeKey("type")] = Field(default_factory=list)
