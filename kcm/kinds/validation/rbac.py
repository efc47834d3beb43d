"""Validation of roles and their bindings.

Source: pkg/apis/rbac/validation/validation.go, Kubernetes 1.33.
"""

from __future__ import annotations

from collections.abc import Sequence

from kcm.api.rbac_v1 import (
    GROUP,
    ClusterRole,
    ClusterRoleBinding,
    PolicyRule,
    Role,
    RoleBinding,
    Subject,
)
from kcm.apimachinery import names
from kcm.apimachinery.field_errors import Faults, invalid, invalid_all, not_supported, required
from kcm.kinds.validation import meta

_SUBJECTS = ("ServiceAccount", "User", "Group")
_ROLES = ("Role", "ClusterRole")


def create_role(role: Role) -> Faults:
    faults = meta.metadata(role, namespaced=True, name_rule=names.path_segment_faults)
    return faults + _rules(role.rules or [], namespaced=True)


def update_role(new: Role, old: Role) -> Faults:
    return meta.metadata_update(new, old) + _rules(new.rules or [], namespaced=True)


def create_cluster_role(role: ClusterRole) -> Faults:
    faults = meta.metadata(role, namespaced=False, name_rule=names.path_segment_faults)
    return faults + _cluster_role(role)


def update_cluster_role(new: ClusterRole, old: ClusterRole) -> Faults:
    return meta.metadata_update(new, old) + _cluster_role(new)


def _cluster_role(role: ClusterRole) -> Faults:
    faults = _rules(role.rules or [], namespaced=False)
    if role.aggregation_rule is None:
        return faults
    path = "aggregationRule.clusterRoleSelectors"
    selectors = role.aggregation_rule.cluster_role_selectors or []
    if not selectors:
        detail = "at least one clusterRoleSelector required if aggregationRule is non-nil"
        faults.append(required(path, detail))
    for index, selector in enumerate(selectors):
        faults += meta.label_selector(selector, f"{path}[{index}]")
    return faults


def _rules(rules: Sequence[PolicyRule], *, namespaced: bool) -> Faults:
    return [
        fault
        for index, rule in enumerate(rules)
        for fault in _rule(rule, f"rules[{index}]", namespaced=namespaced)
    ]


def _rule(rule: PolicyRule, path: str, *, namespaced: bool) -> Faults:
    faults: Faults = []
    if not rule.verbs:
        faults.append(required(f"{path}.verbs", "verbs must contain at least one value"))
    if rule.non_resource_urls:
        return faults + _urls(rule, f"{path}.nonResourceURLs", namespaced=namespaced)
    if not rule.api_groups:
        detail = "resource rules must supply at least one api group"
        faults.append(required(f"{path}.apiGroups", detail))
    if not rule.resources:
        detail = "resource rules must supply at least one resource"
        faults.append(required(f"{path}.resources", detail))
    return faults


def _urls(rule: PolicyRule, path: str, *, namespaced: bool) -> Faults:
    faults: Faults = []
    if namespaced:
        detail = "namespaced rules cannot apply to non-resource URLs"
        faults.append(invalid(path, rule.non_resource_urls, detail))
    if rule.api_groups or rule.resources or rule.resource_names:
        detail = "rules cannot apply to both regular resources and non-resource URLs"
        faults.append(invalid(path, rule.non_resource_urls, detail))
    return faults


def create_role_binding(binding: RoleBinding) -> Faults:
    faults = meta.metadata(binding, namespaced=True, name_rule=names.path_segment_faults)
    return faults + _binding(binding, _ROLES)


def create_cluster_role_binding(binding: ClusterRoleBinding) -> Faults:
    faults = meta.metadata(binding, namespaced=False, name_rule=names.path_segment_faults)
    return faults + _binding(binding, _ROLES[1:])


def update_role_binding(new: RoleBinding, old: RoleBinding) -> Faults:
    return meta.metadata_update(new, old) + _binding(new, _ROLES) + _same_role(new, old)


def update_cluster_role_binding(new: ClusterRoleBinding, old: ClusterRoleBinding) -> Faults:
    return meta.metadata_update(new, old) + _binding(new, _ROLES[1:]) + _same_role(new, old)


_Binding = RoleBinding | ClusterRoleBinding


def _same_role(new: _Binding, old: _Binding) -> Faults:
    if new.role_ref == old.role_ref:
        return []
    return [invalid("roleRef", new.role_ref, "cannot change roleRef")]


def _binding(binding: _Binding, kinds: Sequence[str]) -> Faults:
    reference = binding.role_ref
    faults: Faults = []
    if reference.api_group != GROUP:
        faults.append(not_supported("roleRef.apiGroup", reference.api_group, (GROUP,)))
    if reference.kind not in kinds:
        faults.append(not_supported("roleRef.kind", reference.kind, kinds))
    if not reference.name:
        faults.append(required("roleRef.name"))
    complaints = names.path_segment_faults(reference.name)
    faults += invalid_all("roleRef.name", reference.name, complaints)
    namespaced = isinstance(binding, RoleBinding)
    for index, subject in enumerate(binding.subjects or ()):
        faults += _subject(subject, f"subjects[{index}]", namespaced=namespaced)
    return faults


def _subject(subject: Subject, path: str, *, namespaced: bool) -> Faults:
    if subject.kind not in _SUBJECTS:
        faults = [not_supported(f"{path}.kind", subject.kind, _SUBJECTS)]
        return faults if subject.name else [required(f"{path}.name"), *faults]
    faults = [] if subject.name else [required(f"{path}.name")]
    group = "" if subject.kind == "ServiceAccount" else GROUP
    if subject.kind == "ServiceAccount":
        if subject.name:
            complaints = names.subdomain_faults(subject.name)
            faults += invalid_all(f"{path}.name", subject.name, complaints)
    elif not subject.name:
        detail = f"{subject.kind.lower()} name cannot be empty"
        faults.append(invalid(f"{path}.name", subject.name, detail))
    if (subject.api_group or "") != group:
        faults.append(not_supported(f"{path}.apiGroup", subject.api_group or "", (group,)))
    if subject.kind == "ServiceAccount" and not namespaced and not subject.namespace:
        faults.append(required(f"{path}.namespace"))
    return faults
