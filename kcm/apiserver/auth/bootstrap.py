"""Creates the default cluster roles and bindings when the server starts, and completes them.

What was added to a default role stays. What was removed from it is restored, unless the annotation
`rbac.authorization.kubernetes.io/autoupdate` is "false".

Source: pkg/registry/rbac/rest/storage_rbac.go and reconciliation/, Kubernetes 1.33.
"""

from __future__ import annotations

from typing import TypeVar

import structlog

from kcm import errors
from kcm.api.rbac_v1 import ClusterRole, ClusterRoleBinding, PolicyRule, Role, RoleBinding, Subject
from kcm.apimachinery.meta_v1 import KubeObject
from kcm.apiserver.auth import controller_policy, namespace_policy, policy
from kcm.apiserver.auth.authorizer import PreparedRule
from kcm.apiserver.auth.covering import find_uncovered
from kcm.store import Store
from kcm.store.admission.ensuring import ensure_objects

log = structlog.get_logger("kcm.apiserver")

_Rbac = ClusterRole | ClusterRoleBinding | Role | RoleBinding
RoleT = TypeVar("RoleT", Role, ClusterRole)
BindingT = TypeVar("BindingT", RoleBinding, ClusterRoleBinding)


def ensure(store: Store, *, joining: bool = False) -> None:
    """Creates or completes the default roles and bindings. Raises StoreUnavailable.

    With `joining`, they include those by which bootstrap tokens add nodes.
    """
    wanted: list[_Rbac] = [
        *policy.cluster_roles(),
        *controller_policy.controller_roles(),
        *namespace_policy.namespace_roles(),
        *namespace_policy.namespace_role_bindings(),
        *policy.cluster_role_bindings(),
        *controller_policy.controller_role_bindings(),
        *(policy.joining_bindings() if joining else ()),
    ]
    for default, stored in ensure_objects(store, wanted):
        _complete(store, default, stored)


def _complete(store: Store, default: _Rbac, stored: _Rbac) -> None:
    def change(old: KubeObject) -> KubeObject:
        if old.annotations.get(policy.AUTOUPDATE) == "false":
            return old
        return _with_labels_of(complete(old, default), default)

    if change(stored) == stored:
        return
    try:
        store.modify(default.resource, default.key, change)
    except (errors.NotFound, errors.Invalid) as error:  # deleted, or bound to another role
        log.warning("A default role stays as it is", name=default.name, error=error.message)


def complete(old: KubeObject, default: _Rbac) -> KubeObject:
    """Returns a role or binding with what it lacks of the default one of its kind."""
    match old, default:
        case ClusterRole(), ClusterRole():
            return complete_role(old, default)
        case Role(), Role():
            return complete_rules(old, default)
        case ClusterRoleBinding(), ClusterRoleBinding():
            return complete_binding(old, default)
        case RoleBinding(), RoleBinding():
            return complete_binding(old, default)
    raise TypeError(f"{type(old).__name__} has no defaults of {type(default).__name__}")


def _with_labels_of(obj: KubeObject, wanted: KubeObject) -> KubeObject:
    labels = {**wanted.labels, **obj.labels}
    annotations = {**wanted.annotations, **obj.annotations}
    if labels == obj.labels and annotations == obj.annotations:
        return obj
    return obj.with_metadata(labels=labels, annotations=annotations)


def complete_role(old: ClusterRole, wanted: ClusterRole) -> ClusterRole:
    """Returns `old` with the rules and the aggregation rule of `wanted` that it lacks."""
    if wanted.aggregation_rule is not None:
        present = old.aggregation_rule
        missing = present is None or any(
            selector not in (present.cluster_role_selectors or ())
            for selector in wanted.aggregation_rule.cluster_role_selectors or ()
        )
        return old.replace(aggregation_rule=wanted.aggregation_rule) if missing else old
    return complete_rules(old, wanted)


def complete_rules(old: RoleT, wanted: RoleT) -> RoleT:
    """Returns `old` with the rules of `wanted` that it lacks."""
    held = [PreparedRule(rule) for rule in old.rules or ()]
    missing_rules: list[PolicyRule] = [
        rule for rule in wanted.rules or () if find_uncovered([rule], held)
    ]
    return old.replace(rules=[*(old.rules or ()), *missing_rules]) if missing_rules else old


def complete_binding(old: BindingT, wanted: BindingT) -> BindingT:
    """Returns `old` with the subjects of `wanted` that it lacks."""
    present = {(subject.kind, subject.name) for subject in old.subjects or ()}
    missing: list[Subject] = [
        subject for subject in wanted.subjects or () if (subject.kind, subject.name) not in present
    ]
    return old.replace(subjects=[*(old.subjects or ()), *missing]) if missing else old
