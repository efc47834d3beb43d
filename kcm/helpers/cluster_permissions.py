"""Whether roles allow a user to create something in the cluster, for controllers that ask it.

The API server prepares the rules of many users (`kcm.apiserver.auth.rbac`). A controller asks
seldom, and about the cluster alone.
Source: pkg/registry/rbac/validation/rule.go, Kubernetes 1.33.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from kcm.api.rbac_v1 import ClusterRole, ClusterRoleBinding, PolicyRule, Subject
from kcm.helpers.aggregation import aggregate_rules
from kcm.reconcile.contract import View

_MASTERS = "system:masters"
_ANY = "*"


def may_create(view: View, user: str, groups: Sequence[str], api_group: str, resource: str) -> bool:
    """Reports whether ClusterRoles allow the user to create this resource in the whole cluster.

    `resource` may name a subresource, as in `pods/eviction`. Needs the caches of ClusterRoles and
    ClusterRoleBindings.
    """
    if _MASTERS in groups:
        return True
    roles = view.lister(ClusterRole)
    for binding in view.lister(ClusterRoleBinding).list():
        if not any(_names(subject, user, groups) for subject in binding.subjects or ()):
            continue
        role = roles.find(binding.role_ref.name)
        if role is not None and _allow(_list_rules(role, view), api_group, resource):
            return True
    return False


def _names(subject: Subject, user: str, groups: Sequence[str]) -> bool:
    """Reports whether a subject is the user, or a group of the user."""
    if subject.kind == "ServiceAccount":
        return user == f"system:serviceaccount:{subject.namespace}:{subject.name}"
    return subject.name == user if subject.kind == "User" else subject.name in groups


def _list_rules(role: ClusterRole, view: View) -> Iterable[PolicyRule]:
    if role.aggregation_rule is None:
        return role.rules or ()
    return aggregate_rules(role, view.lister(ClusterRole).list())


def _allow(rules: Iterable[PolicyRule], api_group: str, resource: str) -> bool:
    wanted = {_ANY, resource, f"{_ANY}/{resource.partition('/')[2]}"}
    return any(
        {_ANY, "create"} & set(rule.verbs)
        and {_ANY, api_group} & set(rule.api_groups or ())
        and wanted & set(rule.resources or ())
        and not rule.resource_names
        for rule in rules
    )
