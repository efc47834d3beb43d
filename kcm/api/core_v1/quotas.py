"""core/v1: ResourceQuota and LimitRange.

Source: staging/src/k8s.io/api/core/v1/types.go, Kubernetes 1.33.
"""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from kcm.apimachinery.base import Model
from kcm.apimachinery.meta_v1 import KubeObject
from kcm.apimachinery.quantity import ResourceList


class ScopedResourceSelectorRequirement(Model):
    """A condition on the objects that a quota tracks."""

    scope_name: str = ""
    operator: str = ""
    values: list[str] | None = None


class ScopeSelector(Model):
    """Conditions on the objects that a quota tracks. All of them must hold."""

    kubernetes_atomic: ClassVar[bool] = True

    match_expressions: list[ScopedResourceSelectorRequirement] | None = None


class ResourceQuotaSpec(Model):
    """The limit of each resource, and the scopes of the objects that count."""

    hard: ResourceList | None = None
    scopes: list[str] | None = None
    scope_selector: ScopeSelector | None = None


class ResourceQuotaStatus(Model):
    """The enforced limit of each resource, and how much of it is used."""

    hard: ResourceList | None = None
    used: ResourceList | None = None


class ResourceQuota(KubeObject):
    """Limits the resources that all objects of a namespace use in total, and their numbers."""

    api_version: str = "v1"
    kind: str = "ResourceQuota"
    spec: ResourceQuotaSpec = Field(default_factory=ResourceQuotaSpec)
    status: ResourceQuotaStatus = Field(default_factory=ResourceQuotaStatus)


class LimitRangeItem(Model):
    """The limits and defaults for one type: Pod, Container or PersistentVolumeClaim."""

    type: str = ""
    max: ResourceList | None = None
    min: ResourceList | None = None
    default: ResourceList | None = None
    default_request: ResourceList | None = None
    max_limit_request_ratio: ResourceList | None = None


class LimitRangeSpec(Model):
    """The limits that are enforced in a namespace."""

    limits: list[LimitRangeItem] = Field(default_factory=list)


class LimitRange(KubeObject):
    """Limits the resources of each object in a namespace, and sets defaults for containers."""

    api_version: str = "v1"
    kind: str = "LimitRange"
    spec: LimitRangeSpec = Field(default_factory=LimitRangeSpec)
