"""core/v1: Binding, which is created to bind a pod to a node, and never stored.

Source: staging/src/k8s.io/api/core/v1/types.go, Kubernetes 1.33.
"""

from __future__ import annotations

from pydantic import Field

from kcm.api.core_v1.events import ObjectReference
from kcm.apimachinery.meta_v1 import KubeObject


class Binding(KubeObject):
    """Binds the pod of the same name to the node that is the target."""

    api_version: str = "v1"
    kind: str = "Binding"
    target: ObjectReference = Field(default_factory=ObjectReference)
