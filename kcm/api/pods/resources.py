"""The requests and limits of a whole pod.

Source: staging/src/k8s.io/component-helpers/resource/helpers.go, Kubernetes 1.36.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from kcm.api.core_v1 import Container, PodSpec
from kcm.apimachinery.quantity import Quantity, ResourceList, add_amounts

Part = Literal["requests", "limits"]

HUGE_PAGES = "hugepages-"
_FOR_PODS = frozenset({"cpu", "memory"})


def is_for_pods(name: str) -> bool:
    """Reports whether a pod as a whole, and not only its containers, may ask for a resource."""
    return name in _FOR_PODS or name.startswith(HUGE_PAGES)


def is_native(name: str) -> bool:
    """Reports whether a resource is one of Kubernetes, not of a vendor."""
    return "/" not in name or "kubernetes.io/" in name


def list_pod_level(spec: PodSpec, part: Part) -> ResourceList:
    """Returns what the pod as a whole asks for, beside its containers."""
    given: ResourceList | None = getattr(spec.resources, part, None)
    return {name: amount for name, amount in (given or {}).items() if is_for_pods(name)}


def has_pod_level(spec: PodSpec) -> bool:
    """Reports whether the pod as a whole has requests or limits."""
    return bool(list_pod_level(spec, "requests") or list_pod_level(spec, "limits"))


def requests_of(spec: PodSpec) -> ResourceList:
    """Returns the requests of the pod, or else of all containers, plus the overhead."""
    total = sum_containers(spec, "requests") | list_pod_level(spec, "requests")
    return add_amounts(total, spec.overhead or {})


def limits_of(spec: PodSpec) -> ResourceList:
    """Returns the limits of the pod, or else of all containers, plus the overhead of the resources
    that have a limit.
    """
    limits = sum_containers(spec, "limits") | list_pod_level(spec, "limits")
    extra = {name: amount for name, amount in (spec.overhead or {}).items() if limits.get(name)}
    return add_amounts(limits, extra)


def sum_containers(spec: PodSpec, part: Part) -> ResourceList:
    """Returns the most that containers need at a time, by resource.

    Containers and sidecars run together. An init container runs together with the sidecars before
    it.
    """
    running: ResourceList = {}
    for container in spec.containers:
        _add(running, _read(container, part))
    sidecars: ResourceList = {}
    peak: ResourceList = {}
    for container in spec.init_containers or ():
        needs = _read(container, part)
        if container.restart_policy == "Always":
            _add(running, needs)
            _add(sidecars, needs)
            needs = {name: sidecars[name] for name in needs}
        else:
            needs = {n: a + sidecars[n] if n in sidecars else a for n, a in needs.items()}
        _raise(peak, needs)
    _raise(running, peak)
    return running


def _read(container: Container, part: Part) -> Mapping[str, Quantity]:
    given: ResourceList | None = getattr(container.resources, part)
    return given or {}


def _add(total: ResourceList, more: Mapping[str, Quantity]) -> None:
    """Adds amounts to a total."""
    for name, amount in more.items():
        total[name] = total[name] + amount if name in total else amount


def _raise(least: ResourceList, to: Mapping[str, Quantity]) -> None:
    """Raises amounts to others that are larger."""
    for name, amount in to.items():
        least[name] = max(amount, least.get(name, amount))
