"""Validation of LimitRanges.

Source: pkg/apis/core/validation/validation.go (ValidateLimitRange), Kubernetes 1.33.
"""

from __future__ import annotations

from collections.abc import Mapping

from kcm.api.core_v1 import LimitRange, LimitRangeItem
from kcm.api.pods.resources import is_native
from kcm.apimachinery import names
from kcm.apimachinery.field_errors import (
    Faults,
    duplicate,
    forbidden,
    invalid,
    invalid_all,
    required,
)
from kcm.apimachinery.quantity import Quantity
from kcm.kinds.validation import meta
from kcm.kinds.validation.podspec.resources import resource_name

_TYPES = ("Pod", "Container", "PersistentVolumeClaim")
_LISTS = {
    "max": "max",
    "min": "min",
    "default": "default",
    "default_request": "defaultRequest",
    "max_limit_request_ratio": "maxLimitRequestRatio",
}


def create(limit_range: LimitRange) -> Faults:
    return meta.metadata(limit_range, namespaced=True, name_rule=names.subdomain_faults) + _limits(
        limit_range
    )


def update(new: LimitRange, old: LimitRange) -> Faults:
    return meta.metadata_update(new, old) + _limits(new)


def _limits(limit_range: LimitRange) -> Faults:
    faults: Faults = []
    seen: set[str] = set()
    for number, item in enumerate(limit_range.spec.limits):
        path = f"spec.limits[{number}]"
        faults += _type(item.type, f"{path}.type")
        if item.type in seen:
            faults.append(duplicate(f"{path}.type", item.type))
        seen.add(item.type)
        faults += _item(item, path)
    return faults


def _type(name: str, path: str) -> Faults:
    faults = invalid_all(path, name, names.qualified_name_faults(name))
    if not faults and "/" not in name and name not in _TYPES:
        faults.append(invalid(path, name, "must be a standard limit type or fully qualified"))
    return faults


def _item(item: LimitRangeItem, path: str) -> Faults:
    faults: Faults = []
    lists = dict(_LISTS)
    if item.type == "Pod":
        for field in ("default", "default_request"):
            name = lists.pop(field)
            if getattr(item, field):
                detail = "may not be specified when `type` is 'Pod'"
                faults.append(forbidden(f"{path}.{name}", detail))
    amounts = {name: getattr(item, field) or {} for field, name in lists.items()}
    in_container = item.type in ("Pod", "Container")
    for name, resource_list in amounts.items():
        for key in resource_list:
            faults += resource_name(key, f"{path}.{name}[{key}]", in_container=in_container)
    if item.type == "PersistentVolumeClaim" and not _has_storage(item):
        detail = "either minimum or maximum storage value is required, but neither was provided"
        faults.append(required(f"{path}.limits", detail))
    for key in dict.fromkeys(key for resource_list in amounts.values() for key in resource_list):
        chosen = {
            name: resource_list[key]
            for name, resource_list in amounts.items()
            if key in resource_list
        }
        faults += _order(key, chosen, path) + _ratio(key, chosen, path)
    return faults


def _has_storage(item: LimitRangeItem) -> bool:
    return "storage" in (item.min or ()) or "storage" in (item.max or ())


# Pairs of which the first must not be greater: names for messages, and whose value is shown.
_ORDER = (
    ("min", "max", "min value", "max value", "min", "min"),
    ("min", "defaultRequest", "min value", "default request value") + ("defaultRequest",) * 2,
    ("defaultRequest", "max", "default request value", "max value") + ("defaultRequest",) * 2,
    ("defaultRequest", "default", "default request value", "default limit value")
    + ("defaultRequest",) * 2,
    ("min", "default", "min value", "default value", "default", "min"),
    ("default", "max", "default value", "max value", "default", "max"),
)


def _order(key: str, amounts: Mapping[str, Quantity], path: str) -> Faults:
    faults: Faults = []
    for low, high, what, than, at, shown in _ORDER:
        if low in amounts and high in amounts and amounts[low] > amounts[high]:
            detail = f"{what} {amounts[low]} is greater than {than} {amounts[high]}"
            faults.append(invalid(f"{path}.{at}[{key}]", str(amounts[shown]), detail))
    default, request = amounts.get("default"), amounts.get("defaultRequest")
    overcommitted = is_native(key) and not key.startswith("hugepages-")
    if not overcommitted and None not in (default, request) and default != request:
        detail = f"default value {default} must equal to defaultRequest value {request} in {key}"
        faults.append(invalid(f"{path}.defaultRequest[{key}]", str(request), detail))
    return faults


def _ratio(key: str, amounts: Mapping[str, Quantity], path: str) -> Faults:
    ratio = amounts.get("maxLimitRequestRatio")
    if ratio is None:
        return []
    at = f"{path}.maxLimitRequestRatio[{key}]"
    faults: Faults = []
    if ratio < Quantity(1):
        faults.append(invalid(at, str(ratio), f"ratio {ratio} is less than 1"))
    low, high = amounts.get("min"), amounts.get("max")
    if low and high is not None and ratio.nanos * low.nanos > high.nanos * 10**9:
        detail = f"ratio {ratio} is greater than max/min = {high.nanos / low.nanos:f}"
        faults.append(invalid(at, str(ratio), detail))
    return faults
