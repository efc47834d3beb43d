"""Validation of the requests and limits of a pod as a whole.

Source: validatePodResources and validatePodResourceConsistency in
pkg/apis/core/validation/validation.go, Kubernetes 1.36.
"""

from __future__ import annotations

from kcm.api.core_v1 import PodSpec, ResourceRequirements
from kcm.api.pods.resources import HUGE_PAGES, is_for_pods, sum_containers
from kcm.apimachinery.field_errors import Faults, forbidden, invalid, not_supported
from kcm.apimachinery.quantity import ResourceList
from kcm.kinds.validation.podspec.resources import requirements, resource_name

_NAMES = ("cpu", "hugepages-", "memory")


def pod_resources(spec: PodSpec, path: str) -> Faults:
    """Checks that the pod's amounts are allowed, and not less than its containers'."""
    resources = spec.resources
    if resources is None:
        return []
    if spec.os is not None and spec.os.name == "windows":
        return [forbidden(path, "may not be set for a windows pod")]
    faults: Faults = []
    if resources.claims is not None:
        detail = "claims may not be set for Resources at pod-level"
        faults.append(forbidden(f"{path}.claims", detail))
    faults += requirements(resources, path, name_rule=_resource_name)
    return faults + _at_least_of_containers(spec, resources, path)


def _resource_name(name: str, path: str) -> Faults:
    faults = resource_name(name, path, in_container=False)
    if faults or is_for_pods(name):
        return faults
    return [not_supported(path, name, _NAMES)]


def _at_least_of_containers(spec: PodSpec, whole: ResourceRequirements, path: str) -> Faults:
    limits = whole.limits or {}
    huge_pages = {
        name: amount
        for name, amount in sum_containers(spec, "limits").items()
        if name.startswith(HUGE_PAGES)
    }
    requests = sum_containers(spec, "requests")
    faults = [
        *_below(whole.requests or {}, requests, f"{path}.requests", "requests"),
        *_below(limits, huge_pages, f"{path}.limits", "limits"),
    ]
    for index, container in enumerate(spec.containers):
        for name, amount in (container.resources.limits or {}).items():
            if name in limits and amount > limits[name]:
                where = f"{path}.containers[{index}][{name}].limits"
                detail = f"must be less than or equal to pod limits of {limits[name]}"
                faults.append(invalid(where, str(amount), detail))
    return faults


def _below(whole: ResourceList, containers: ResourceList, path: str, part: str) -> Faults:
    detail = f"must be greater than or equal to aggregate container {part} of"
    return [
        invalid(f"{path}[{name}]", str(amount), f"{detail} {containers[name]}")
        for name, amount in whole.items()
        if name in containers and containers[name] > amount
    ]
