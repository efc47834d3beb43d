"""Quality of service classes of pods.

Source: pkg/apis/core/v1/helper/qos, Kubernetes 1.33.
"""

from __future__ import annotations

from collections.abc import Sequence

from kcm.api.core_v1 import Container, Pod
from kcm.apimachinery.quantity import ResourceList

GUARANTEED, BURSTABLE, BEST_EFFORT = "Guaranteed", "Burstable", "BestEffort"


def qos_class(pod: Pod) -> str:
    """Returns Guaranteed, Burstable or BestEffort.

    It is the class in the pod's status, otherwise that which follows from cpu and memory.
    """
    return pod.status.qos_class or compute_qos_class(pod)


def compute_qos_class(pod: Pod) -> str:
    """Returns the class that follows from cpu and memory of the pod, or else of its containers."""
    if pod.spec.resources is not None:
        whole = Container(resources=pod.spec.resources)
        return _compute_class([whole])
    return _compute_class([*pod.spec.containers, *(pod.spec.init_containers or ())])


def _compute_class(containers: Sequence[Container]) -> str:
    if not any(
        _compute_resources(c.resources.requests) or _compute_resources(c.resources.limits)
        for c in containers
    ):
        return BEST_EFFORT
    return GUARANTEED if all(map(_is_guaranteed, containers)) else BURSTABLE


def _is_guaranteed(container: Container) -> bool:
    limits = _compute_resources(container.resources.limits)
    requests = _compute_resources(container.resources.requests) or limits
    return len(limits) == 2 and requests == limits


def _compute_resources(amounts: ResourceList | None) -> ResourceList:
    """Returns the amounts of cpu and memory that are not zero."""
    return {k: v for k, v in (amounts or {}).items() if k in ("cpu", "memory") and v}
