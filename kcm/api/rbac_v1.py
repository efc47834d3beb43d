"""rbac.authorization.k8s.io/v1: roles, and the bindings that grant them.

Source: staging/src/k8s.io/api/rbac/v1/types.go, Kubernetes 1.33.
"""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from kcm.apimachinery.base import Model
from kcm.apimachinery.meta_v1 import KubeObject, LabelSelector

GROUP = "rbac.authorization.k8s.io"


class PolicyRule(Model):
    """Verbs that are allowed on resources, or on URLs that belong to no resource."""

    verbs: list[str] = Field(default_factory=list)
    api_groups: list[str] | None = None
    resources: list[str] | None = None
    resource_names: list[str] | None = None
    non_resource_urls: list[str] | None = None


class Subject(Model):
    """A user, group or service account to which a role is granted."""

    kubernetes_atomic: ClassVar[bool] = True

    kind: str = ""
    api_group: str | None = None
    name: str = ""
    namespace: str | None = None


class RoleRef(Model):
    """The Role or ClusterRole that a binding grants."""

    kubernetes_atomic: ClassVar[bool] = True

    api_group: str = ""
    kind: str = ""
    name: str = ""


class AggregationRule(Model):
    """Selectors for the ClusterRoles whose rules are combined into a ClusterRole."""

    cluster_role_selectors: list[LabelSelector] | None = None


class Role(KubeObject):
    """Rules that allow requests in one namespace."""

    api_version: str = "rbac.authorization.k8s.io/v1"
    kind: str = "Role"
    rules: list[PolicyRule] | None = None


class ClusterRole(KubeObject):
    """Rules that allow requests in all namespaces, or in that of a RoleBinding that names it."""

    api_version: str = "rbac.authorization.k8s.io/v1"
    kind: str = "ClusterRole"
    rules: list[PolicyRule] | None = None
    aggregation_rule: AggregationRule | None = None


class RoleBinding(KubeObject):
    """Grants the rules of a Role or ClusterRole in one namespace."""

    api_version: str = "rbac.authorization.k8s.io/v1"
    kind: str = "RoleBinding"
    subjects: list[Subject] | None = None
    role_ref: RoleRef = Field(default_factory=RoleRef)


class ClusterRoleBinding(KubeObject):
    """Grants the rules of a ClusterRole in the whole cluster."""

    api_version: str = "rbac.authorization.k8s.io/v1"
    kind: str = "ClusterRoleBinding"
    subjects: list[Subject] | None = None
    role_ref: RoleRef = Field(default_factory=RoleRef)
