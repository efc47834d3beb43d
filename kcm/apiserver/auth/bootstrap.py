"""Creates the default cluster roles and bindings when the server starts, and completes them.

What was added to a default role stays. What was removed from it is restored, unless the annotation
`rbac.authorization.kubernetes.io/autoupdate` is "false".

Source: pkg/registry/rbac/rest/storage_rbac.go and reconciliation/, Kubernetes 1.33.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import structlog

from kcm import errors
from kcm.api import scheme
from kcm.api.rbac_v1 import ClusterRole, ClusterRoleBinding, PolicyRule, Role, RoleBinding, Subject
from kcm.apimachinery.meta_v1 import KubeObject
from kcm.apiserver.auth import policy
from kcm.apiserver.auth.covering import find_uncovered
from kcm.apiserver.auth.rules import PreparedRule
from kcm.store import Store

log = structlog.get_logger("kcm.apiserver")

T = TypeVar("T", bound=KubeObject)
RoleT = TypeVar("RoleT", Role, ClusterRole)
BindingT = TypeVar("BindingT", RoleBinding, ClusterRoleBinding)


def ensure(store: Store, *, joining: bool = False) -> None:
    """Creates or completes the default roles and bindings. Raises StoreUnavailable.

    With `joining`, they include those by which bootstrap tokens add nodes.
    """
    for role in policy.cluster_roles():
        _ensure(store, role, complete_role)
    for role_of_namespace in policy.namespace_roles():
        _ensure(store, role_of_namespace, complete_rules)
    for binding_of_namespace in policy.namespace_role_bindings():
        _ensure(store, binding_of_namespace, complete_binding)
    bindings = policy.cluster_role_bindings()
    for binding in (*bindings, *(policy.joining_bindings() if joining else ())):
        _ensure(store, binding, complete_binding)


def _ensure(store: Store, wanted: T, completed: Callable[[T, T], T]) -> None:
    resource = scheme.resource_of(wanted)

    def change(old: KubeObject) -> KubeObject:
        assert isinstance(old, type(wanted))
        if old.annotations.get(policy.AUTOUPDATE) == "false":
            return old
        return _with_labels_of(completed(old, wanted), wanted)

    try:
        stored = store.get(resource, wanted.key)
    except errors.Damaged:  # without it users have no access, so it is replaced
        store.delete(resource, wanted.key)
        store.create(wanted)
        return
    except errors.NotFound:
        try:
            store.create(wanted)
        except errors.AlreadyExists:  # another server starts at the same time
            return
        return
    if change(stored) == stored:
        return
    try:
        store.modify(resource, wanted.key, change)
    except (errors.NotFound, errors.Invalid) as error:  # deleted, or bound to another role
        log.warning("A default role stays as it is", name=wanted.name, error=error.message)


def _with_labels_of(obj: T, wanted: T) -> T:
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
