"""Defaults of the requests and limits of a pod as a whole, which templates do not get.

Source: defaultHugePagePodLimits and defaultPodRequests in pkg/apis/core/v1/defaults.go, Kubernetes
1.36.
"""

from __future__ import annotations

from kcm.api.core_v1 import PodSpec
from kcm.api.pods.resources import HUGE_PAGES, is_for_pods, sum_containers
from kcm.kinds.defaults.defaulting import change_fields


def fill_pod_resources(spec: PodSpec) -> PodSpec:
    """Returns the spec with pod-level limits of huge pages, and pod-level requests, that follow
    from the containers and from the pod-level limits.
    """
    resources = spec.resources
    if resources is None or not (resources.limits or resources.requests):
        return spec
    limits, requests = dict(resources.limits or {}), dict(resources.requests or {})
    for name, amount in sum_containers(spec, "limits").items():
        if name.startswith(HUGE_PAGES) and name not in requests:
            limits.setdefault(name, amount)
    if limits:
        for name, amount in sum_containers(spec, "requests").items():
            if is_for_pods(name) and not name.startswith(HUGE_PAGES):
                requests.setdefault(name, amount)
        for name, amount in limits.items():
            if is_for_pods(name):
                requests.setdefault(name, amount)
    filled = change_fields(resources, limits=limits or None, requests=requests or None)
    return change_fields(spec, resources=filled)
