"""rbac.authorization.k8s.io/v1: roles and who has them.

Source: staging/src/k8s.io/api/rbac/v1/types.go, Kubernetes 1.33.
"""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from kcm.apimachinery.base import Model
from kcm.apimachinery.meta_v1 import KubeObject, LabelSelector

GROUP = "rbac.authorization.k8s.io"


class PolicyRule(Model):
    """Which verbs on which resources, or on which URLs."""

    verbs: list[str] = Field(default_factory=list)
    api_groups: list[str] | None = None
    resources: list[str] | None = None
    resource_names: list[str] | None = None
    non_resource_urls: list[str] | None = None


class Subject(Model):
    """A user, a group or a service account."""

    kubernetes_atomic: ClassVar[bool] = True

    kind: str = ""
    api_group: str | None = None
    name: str = ""
    namespace: str | None = None


class RoleRef(Model):
    """The role that a binding gives."""

    kubernetes_atomic: ClassVar[bool] = True

    api_group: str = ""
    kind: str = ""
    name: str = ""


class AggregationRule(Model):
    """The cluster roles, by their labels, whose rules a cluster role takes over."""

    cluster_role_selectors: list[LabelSelector] | None = None


class Role(KubeObject):
    """What may be done in one namespace."""

    api_version: str = "rbac.authorization.k8s.io/v1"
    kind: str = "Role"
    rules: list[PolicyRule] | None = None


class ClusterRole(KubeObject):
    """What may be done in all namespaces, or wherever a RoleBinding names it."""

    api_version: str = "rbac.authorization.k8s.io/v1"
    kind: str = "ClusterRole"
    rules: list[PolicyRule] | None = None
    aggregation_rule: AggregationRule | None = None


class RoleBinding(KubeObject):
    """Who has a role in one namespace."""

    api_version: str = "rbac.authorization.k8s.io/v1"
    kind: str = "RoleBinding"
    subjects: list[Subject] | None = None
    role_ref: RoleRef = Field(default_factory=RoleRef)


class ClusterRoleBinding(KubeObject):
    """Who has a cluster role everywhere."""

    api_version: str = "rbac.authorization.k8s.io/v1"
    kind: str = "ClusterRoleBinding"
    subjects: list[Subject] | None = None
    role_ref: RoleRef = Field(default_factory=RoleRef)
