"""Validation of ResourceQuotas.

Source: pkg/apis/core/validation/validation.go and pkg/apis/core/helper/helpers.go, Kubernetes 1.33.
"""

from __future__ import annotations

from collections.abc import Iterable

from kcm.api.core_v1 import ResourceQuota, ResourceQuotaSpec, ScopedResourceSelectorRequirement
from kcm.api.pods.resources import is_native
from kcm.apimachinery import names
from kcm.apimachinery.field_errors import (
    IMMUTABLE,
    NOT_NEGATIVE,
    Faults,
    invalid,
    invalid_all,
    required,
)
from kcm.apimachinery.quantity import ResourceList
from kcm.kinds.validation import meta

_COUNTED = {
    *("pods", "resourcequotas", "services", "services.nodeports", "services.loadbalancers"),
    *("replicationcontrollers", "secrets", "configmaps", "persistentvolumeclaims"),
}
_POD_COMPUTE = {
    *("cpu", "requests.cpu", "limits.cpu", "memory", "requests.memory", "limits.memory"),
}
_STORAGE = {
    *("requests.storage", "ephemeral-storage"),
    *("requests.ephemeral-storage", "limits.ephemeral-storage"),
}
_STANDARD = _COUNTED | _POD_COMPUTE | _STORAGE
_HUGE_PAGES = ("hugepages-", "requests.hugepages-")
_WITHOUT_VALUES = (
    "Terminating",
    "NotTerminating",
    "BestEffort",
    "NotBestEffort",
    "CrossNamespacePodAffinity",
)
_OF_CLAIMS = "VolumeAttributesClass"
_SCOPES = frozenset({*_WITHOUT_VALUES, "PriorityClass", _OF_CLAIMS})
_CONTRARY = ({"BestEffort", "NotBestEffort"}, {"Terminating", "NotTerminating"})


def create(quota: ResourceQuota) -> Faults:
    return [
        *meta.metadata(quota, namespaced=True, name_rule=names.subdomain_faults),
        *_spec(quota.spec),
        *_status(quota),
    ]


def update(new: ResourceQuota, old: ResourceQuota) -> Faults:
    faults = meta.metadata_update(new, old) + _spec(new.spec)
    if set(new.spec.scopes or ()) != set(old.spec.scopes or ()):
        faults.append(invalid("spec.scopes", new.spec.scopes or [], IMMUTABLE))
    return faults


def status_update(new: ResourceQuota, old: ResourceQuota) -> Faults:
    return meta.metadata_update(new, old) + _status(new)


def _status(quota: ResourceQuota) -> Faults:
    status = quota.status
    return _amounts(status.hard, "status.hard") + _amounts(status.used, "status.used")


def _spec(spec: ResourceQuotaSpec) -> Faults:
    return _amounts(spec.hard, "spec.hard") + _scopes(spec) + _selector(spec)


def _amounts(amounts: ResourceList | None, path: str) -> Faults:
    faults: Faults = []
    for name, amount in (amounts or {}).items():
        at = f"{path}[{name}]"
        faults += _name(name, at)
        if amount.sign() < 0:
            faults.append(invalid(at, str(amount), NOT_NEGATIVE))
        if (name in _COUNTED or _is_extended(name)) and amount.nanos % 10**9:
            faults.append(invalid(at, str(amount), "must be an integer"))
    return faults


def _name(name: str, path: str) -> Faults:
    faults = invalid_all(path, name, names.qualified_name_faults(name))
    if not faults and "/" not in name and not _is_standard(name):
        faults.append(invalid(path, name, "must be a standard resource for quota"))
    return faults


def _is_standard(name: str) -> bool:
    return name in _STANDARD or name.startswith(_HUGE_PAGES)


def _is_extended(name: str) -> bool:
    """Reports whether the name is that of an extended resource, without the prefix `requests.`."""
    return not is_native(name) and not name.startswith("requests.")


# --- scopes


def _scopes(spec: ResourceQuotaSpec) -> Faults:
    path, scopes = "spec.scopes", spec.scopes or []
    faults: Faults = []
    for scope in scopes:
        if scope not in _SCOPES:
            faults.append(invalid(path, scopes, "unsupported scope"))
        unfit = _unfit(scope, spec)
        faults += [invalid(path, scopes, "unsupported scope applied to resource")] * unfit
    return faults + _contrary(scopes, path, scopes)


def _selector(spec: ResourceQuotaSpec) -> Faults:
    selector = spec.scope_selector
    if selector is None:
        return []
    path, wanted = "spec.scopeSelector.matchExpressions", selector.match_expressions or []
    faults: Faults = []
    for expression in wanted:
        scope = expression.scope_name
        if scope not in _SCOPES:
            faults.append(invalid(f"{path}.scopeName", scope, "unsupported scope"))
        unfit = _unfit(scope, spec)
        faults += [invalid(path, selector, "unsupported scope applied to resource")] * unfit
        faults += _expression(expression, path)
    return faults + _contrary([one.scope_name for one in wanted], path, selector)


def _unfit(scope: str, spec: ResourceQuotaSpec) -> int:
    """Returns how many of the quota's resources do not apply to objects of the scope."""
    if scope not in _SCOPES:
        return 0
    fit = {"pods"} if scope == "BestEffort" else {"pods"} | _POD_COMPUTE
    if scope == _OF_CLAIMS:
        fit = {"persistentvolumeclaims", "requests.storage"}
    return sum(_is_standard(name) and name not in fit for name in spec.hard or ())


def _contrary(scopes: Iterable[str], path: str, shown: object) -> Faults:
    named = set(scopes)
    return [invalid(path, shown, "conflicting scopes") for pair in _CONTRARY if pair <= named]


_ONLY_EXISTS = (
    "must be 'Exist' when scope is any of ResourceQuotaScopeTerminating, "
    "ResourceQuotaScopeNotTerminating, ResourceQuotaScopeBestEffort, "
    "ResourceQuotaScopeNotBestEffort or ResourceQuotaScopeCrossNamespacePodAffinity"
)


def _expression(expression: ScopedResourceSelectorRequirement, path: str) -> Faults:
    faults: Faults = []
    if expression.scope_name in _WITHOUT_VALUES and expression.operator != "Exists":
        faults.append(invalid(f"{path}.operator", expression.operator, _ONLY_EXISTS))
    if expression.operator in ("In", "NotIn"):
        if not expression.values:
            detail = (
                "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector"
            )
            faults.append(required(f"{path}.values", detail))
    elif expression.operator in ("Exists", "DoesNotExist"):
        if expression.values:
            detail = (
                "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector"
            )
            faults.append(invalid(f"{path}.values", expression.values, detail))
    else:
        faults.append(
            invalid(f"{path}.operator", expression.operator, "not a valid selector operator")
        )
    return faults
