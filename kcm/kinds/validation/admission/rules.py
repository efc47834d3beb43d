"""Validation of the rules that say which requests a policy or webhook applies to.

Source: pkg/apis/admissionregistration/validation/validation.go, Kubernetes 1.33.
"""

from __future__ import annotations

from collections.abc import Sequence

from kcm.api.admissionregistration_v1 import (
    ALL,
    CLUSTER,
    CONNECT,
    CREATE,
    DELETE,
    EQUIVALENT,
    EXACT,
    NAMESPACED,
    UPDATE,
    MatchResources,
    NamedRuleWithOperations,
    RuleWithOperations,
)
from kcm.apimachinery import names
from kcm.apimachinery.field_errors import (
    Faults,
    duplicate,
    invalid,
    invalid_all,
    not_supported,
    required,
)
from kcm.kinds.validation import meta

_OPERATIONS = (ALL, CONNECT, CREATE, DELETE, UPDATE)
_SCOPES = (ALL, CLUSTER, NAMESPACED)
_POLICIES = (EQUIVALENT, EXACT)


def match_resources(matching: MatchResources, path: str) -> Faults:
    faults: Faults = []
    if not matching.match_policy:
        faults.append(required(f"{path}.matchPolicy"))
    elif matching.match_policy not in _POLICIES:
        faults.append(not_supported(f"{path}.matchPolicy", matching.match_policy, _POLICIES))
    for field, selector in (
        ("namespaceSelector", matching.namespace_selector),
        ("objectSelector", matching.object_selector),
    ):
        if selector is None:
            faults.append(required(f"{path}.{field}"))
        else:
            faults += meta.label_selector(selector, f"{path}.{field}")
    for field, rules in (
        ("resourceRules", matching.resource_rules),
        ("excludeResourceRules", matching.exclude_resource_rules),
    ):
        for index, one in enumerate(rules or ()):
            faults += _named_rule(one, f"{path}.{field}[{index}]")
    return faults


def _named_rule(named: NamedRuleWithOperations, path: str) -> Faults:
    return _names(named.resource_names or (), f"{path}.resourceNames") + rule(named, path)


def rule(rule: RuleWithOperations | NamedRuleWithOperations, path: str) -> Faults:
    faults = _operations(rule.operations or (), f"{path}.operations")
    faults += _all_or_some(rule.api_groups or (), f"{path}.apiGroups", "API groups", empty=True)
    faults += _all_or_some(
        rule.api_versions or (), f"{path}.apiVersions", "API versions", empty=False
    )
    faults += _resources(rule.resources or (), f"{path}.resources")
    if rule.scope and rule.scope not in _SCOPES:
        faults.append(not_supported(f"{path}.scope", rule.scope, _SCOPES))
    return faults


def _names(given: Sequence[str], path: str) -> Faults:
    faults: Faults = []
    seen: set[str] = set()
    for index, name in enumerate(given):
        details = names.path_segment_faults(name)
        faults += invalid_all(f"{path}[{index}]", name, details)
        if name in seen:
            faults.append(duplicate(f"{path}[{index}]", name))
        seen.add(name)
    return faults


def _operations(given: Sequence[str], path: str) -> Faults:
    if not given:
        return [required(path)]
    faults: Faults = []
    if len(given) > 1 and ALL in given:
        why = "if '*' is present, must not specify other operations"
        faults.append(invalid(path, list(given), why))
    for index, operation in enumerate(given):
        if operation not in _OPERATIONS:
            faults.append(not_supported(f"{path}[{index}]", operation, _OPERATIONS))
    return faults


def _all_or_some(given: Sequence[str], path: str, what: str, *, empty: bool) -> Faults:
    if not given:
        return [required(path)]
    faults: Faults = []
    if len(given) > 1 and ALL in given:
        why = f"if '*' is present, must not specify other {what}"
        faults.append(invalid(path, list(given), why))
    if not empty:
        faults += [required(f"{path}[{n}]") for n, text in enumerate(given) if not text]
    return faults


def _resources(given: Sequence[str], path: str) -> Faults:
    if not given:
        return [required(path)]
    faults: Faults = []
    of_all: set[str] = set()  # subresources of `*/...`
    all_of: set[str] = set()  # resources of `.../*`
    without_subresources = has_all = False
    for index, text in enumerate(given):
        where = f"{path}[{index}]"
        if not text:
            faults.append(required(where))
        has_all = has_all or text == "*/*"
        without_subresources = without_subresources or text == ALL
        resource, slash, sub = text.partition("/")
        if slash and resource in all_of:
            why = f"if '{resource}/*' is present, must not specify {text}"
            faults.append(invalid(where, text, why))
        if slash and sub in of_all:
            why = f"if '*/{sub}' is present, must not specify {text}"
            faults.append(invalid(where, text, why))
        if slash and sub == ALL:
            all_of.add(resource)
        if slash and resource == ALL:
            of_all.add(sub)
    if len(given) > 1 and has_all:
        why = "if '*/*' is present, must not specify other resources"
        faults.append(invalid(path, list(given), why))
    if without_subresources and any("/" not in text and text != ALL for text in given):
        why = "if '*' is present, must not specify other resources without subresources"
        faults.append(invalid(path, list(given), why))
    return faults
