"""core/v1: Namespace.

Source: staging/src/k8s.io/api/core/v1/types.go, Kubernetes 1.33.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from kcm.apimachinery.base import MergeKey, Model
from kcm.apimachinery.meta_v1 import KubeObject, Time


class NamespaceSpec(Model):
    """The finalizers that keep a deleted namespace until its content is gone."""

    finalizers: list[str] | None = None


class NamespaceCondition(Model):
    """One aspect of a namespace's state."""

    type: str = ""
    status: str = ""
    last_transition_time: Time | None = None
    reason: str | None = None
    message: str | None = None


class NamespaceStatus(Model):
    """The phase of a namespace (Active or Terminating), and what delays its deletion."""

    phase: str | None = None
    conditions: Annotated[list[NamespaceCondition] | None, MergeKey("type")] = None


class Namespace(KubeObject):
    """A scope for the names of objects. Its objects are deleted with it."""

    api_version: str = "v1"
    kind: str = "Namespace"
    spec: NamespaceSpec = Field(default_factory=NamespaceSpec)
    status: NamespaceStatus = Field(default_factory=NamespaceStatus)
