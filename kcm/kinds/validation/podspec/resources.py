"""Validation of limits, requests and resize policies of containers.

Source: validateResourceRequirements and validateResizePolicy in
pkg/apis/core/validation/validation.go, Kubernetes 1.33.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from kcm.api.core_v1 import ResourceRequirements
from kcm.api.core_v1.containers import ContainerResizePolicy
from kcm.api.pods.resources import is_native
from kcm.apimachinery.field_errors import (
    NOT_NEGATIVE,
    Faults,
    duplicate,
    forbidden,
    invalid,
    one_of,
    required,
)
from kcm.apimachinery.metadata_checks import label_key
from kcm.apimachinery.quantity import Quantity, ResourceList

_IN_CONTAINERS = frozenset({"cpu", "memory", "ephemeral-storage"})
_STANDARD = _IN_CONTAINERS | {"storage", "pods", "services", "secrets", "configmaps"}
_HUGE_PAGES = "hugepages-"
_EXTENDED_DETAIL = "doesn't follow extended resource name standard"
_RESIZABLE = ("cpu", "memory")
_RESIZE_POLICIES = ("NotRequired", "RestartContainer")


NameRule = Callable[[str, str], Faults]
"""Checks the name of a resource, by name and path."""


def requirements(
    resources: ResourceRequirements,
    path: str,
    *,
    name_rule: NameRule | None = None,
) -> Faults:
    """Checks limits and requests: known names, no negative amounts, requests within limits."""
    limits, requests = resources.limits or {}, resources.requests or {}
    if not limits and not requests:
        return []
    faults: Faults = []
    for name, amount in limits.items():
        faults += _amount(name, amount, f"{path}.limits[{name}]", name_rule)
    for name, amount in requests.items():
        faults += _amount(name, amount, f"{path}.requests[{name}]", name_rule)
        faults += _within_limit(name, amount, limits, path)
    both = limits.keys() | requests.keys()
    if any(name.startswith(_HUGE_PAGES) for name in both) and not both & {"cpu", "memory"}:
        faults.append(forbidden(path, "HugePages require cpu or memory"))
    return faults


def _amount(name: str, amount: Quantity, path: str, name_rule: NameRule | None) -> Faults:
    faults = (name_rule or resource_name)(name, path)
    if amount.sign() < 0:
        faults.append(invalid(path, str(amount), NOT_NEGATIVE))
    if not is_native(name) and amount.nanos % 10**9:
        faults.append(invalid(path, str(amount), "must be an integer"))
    if name.startswith(_HUGE_PAGES) and not _is_divisible(name, amount):
        detail = f"{amount} is not positive integer multiple of {name}"
        faults.append(invalid(path, str(amount), detail))
    return faults


def _is_divisible(name: str, amount: Quantity) -> bool:
    """Reports whether an amount of huge pages is a multiple of their size.

    Source: IsHugePageResourceValueDivisible in pkg/apis/core/helper/helpers.go.
    """
    try:
        size = Quantity(name.removeprefix(_HUGE_PAGES)).value()
    except ValueError:
        return False
    return size > 0 and amount.value() % size == 0


def _within_limit(name: str, amount: Quantity, limits: ResourceList, path: str) -> Faults:
    overcommit = is_native(name) and not name.startswith(_HUGE_PAGES)
    limit = limits.get(name)
    if limit is None:
        detail = "Limit must be set for non overcommitable resources"
        return [] if overcommit else [required(f"{path}.limits", detail)]
    if not overcommit and amount != limit:
        detail = f"must be equal to {name} limit of {limit}"
        return [invalid(f"{path}.requests", str(amount), detail)]
    if amount > limit:
        detail = f"must be less than or equal to {name} limit of {limit}"
        return [invalid(f"{path}.requests", str(amount), detail)]
    return []


def resource_name(name: str, path: str, *, in_container: bool = True) -> Faults:
    """Checks the name of a resource, with `in_container` of one that a container may request."""
    faults = label_key(name, path)
    if faults or name in _IN_CONTAINERS:
        return faults
    if "/" not in name:
        if name.startswith(_HUGE_PAGES):
            return []
        if name not in _STANDARD:
            detail = "must be a standard resource type or fully qualified"
            faults.append(invalid(path, name, detail))
        if in_container:
            faults.append(invalid(path, name, "must be a standard resource for containers"))
        return faults
    if in_container and not is_native(name) and name.startswith("requests."):
        faults.append(invalid(path, name, _EXTENDED_DETAIL))
    return faults


def resize_policies(
    policies: Iterable[ContainerResizePolicy], path: str, restart_policy: str
) -> Faults:
    """Checks the resize policies of a container in a pod with this restart policy."""
    faults: Faults = []
    seen: set[str] = set()
    for index, policy in enumerate(policies):
        if policy.resource_name in seen:
            faults.append(duplicate(f"{path}[{index}]", policy.resource_name))
        seen.add(policy.resource_name)
        faults += one_of(path, policy.resource_name, _RESIZABLE)
        faults += one_of(path, policy.restart_policy, _RESIZE_POLICIES)
        if restart_policy == "Never" and policy.restart_policy != "NotRequired":
            detail = "must be 'NotRequired' when pod `restartPolicy` is 'Never'"
            faults.append(invalid(path, policy.restart_policy, detail))
    return faults


def no_restarts(policies: Iterable[ContainerResizePolicy], path: str) -> Faults:
    """Checks the resize policies of an init container that ends: it cannot be restarted."""
    detail = "must not be set to 'RestartContainer' for non-sidecar initContainers"
    return [
        invalid(f"{path}.resizePolicy[{index}].restartPolicy", policy.restart_policy, detail)
        for index, policy in enumerate(policies)
        if policy.restart_policy == "RestartContainer"
    ]
