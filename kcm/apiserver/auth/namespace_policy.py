"""The default Roles and RoleBindings of the namespaces kube-system and kube-public.

Source: plugin/pkg/auth/authorizer/rbac/bootstrappolicy/namespace_policy.go, Kubernetes 1.36.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kcm.api.rbac_v1 import GROUP, Role, RoleBinding, RoleRef
from kcm.apiserver.auth.policy import (
    EVENTS,
    READ,
    RuleText,
    default_metadata,
    parse_rules,
    parse_subject,
)

_LOCK = "get watch list create update"
_READER = "extension-apiserver-authentication-reader"
_SIGNER, _CLOUD, _CLEANER = (
    f"system:controller:{name}" for name in ("bootstrap-signer", "cloud-provider", "token-cleaner")
)
_MANAGER_LOCK, _SCHEDULER_LOCK = (
    f"system::leader-locking-{name}" for name in ("kube-controller-manager", "kube-scheduler")
)
_LOCKING = (
    (_LOCK, "coordination.k8s.io", "leases"),
    (_LOCK, "coordination.k8s.io", "leasecandidates"),
)
# Rules by namespace and name.
_ROLES: Mapping[tuple[str, str], Sequence[RuleText]] = {
    ("kube-system", _READER): ((READ, "core", "configmaps", "extension-apiserver-authentication"),),
    ("kube-system", _SIGNER): ((READ, "core", "secrets"),),
    ("kube-system", _CLOUD): (("create get list watch", "core", "configmaps"),),
    ("kube-system", _CLEANER): (("get list watch delete", "core", "secrets"), EVENTS),
    ("kube-system", _MANAGER_LOCK): _LOCKING,
    ("kube-system", _SCHEDULER_LOCK): _LOCKING,
    ("kube-public", _SIGNER): (
        (READ, "core", "configmaps"),
        ("update", "core", "configmaps", "cluster-info"),
        EVENTS,
    ),
}
_MANAGER, _SCHEDULER = "User system:kube-controller-manager", "User system:kube-scheduler"
_ACCOUNT = "ServiceAccount kube-system"
# Roles and subjects by namespace and name.
_BINDINGS: Mapping[tuple[str, str], tuple[str, Sequence[str]]] = {
    ("kube-system", f"system::{_READER}"): (_READER, (_MANAGER, _SCHEDULER)),
    ("kube-system", _MANAGER_LOCK): (
        _MANAGER_LOCK,
        (
            _MANAGER,
            f"{_ACCOUNT}/kube-controller-manager",
            f"{_ACCOUNT}/leader-election-controller",
        ),
    ),
    ("kube-system", _SCHEDULER_LOCK): (
        _SCHEDULER_LOCK,
        (_SCHEDULER, f"{_ACCOUNT}/kube-scheduler"),
    ),
    ("kube-system", _SIGNER): (_SIGNER, (f"{_ACCOUNT}/bootstrap-signer",)),
    ("kube-system", _CLOUD): (_CLOUD, (f"{_ACCOUNT}/cloud-provider",)),
    ("kube-system", _CLEANER): (_CLEANER, (f"{_ACCOUNT}/token-cleaner",)),
    ("kube-public", _SIGNER): (_SIGNER, (f"{_ACCOUNT}/bootstrap-signer",)),
}


def namespace_roles() -> list[Role]:
    """Returns the default Roles."""
    return [
        Role(metadata=default_metadata(name).replace(namespace=namespace), rules=parse_rules(rules))
        for (namespace, name), rules in _ROLES.items()
    ]


def namespace_role_bindings() -> list[RoleBinding]:
    """Returns the default RoleBindings."""
    return [
        RoleBinding(
            metadata=default_metadata(name).replace(namespace=namespace),
            role_ref=RoleRef(api_group=GROUP, kind="Role", name=role),
            subjects=[parse_subject(text) for text in subjects],
        )
        for (namespace, name), (role, subjects) in _BINDINGS.items()
    ]
