"""What a pod asks of its node, whether the node has it, and the pod's class of service.

Amounts are in thousandths of the resource's unit.
Source: staging/src/k8s.io/component-helpers/resource/helpers.go,
pkg/kubelet/lifecycle/predicate.go and pkg/apis/core/v1/helper/qos, Kubernetes 1.33.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from kcm.api.core_v1 import Container, Node, Pod
from kcm.apimachinery.quantity import ResourceList

Amounts = Mapping[str, int]

GUARANTEED, BURSTABLE, BEST_EFFORT = "Guaranteed", "Burstable", "BestEffort"


class Shortage(NamedTuple):
    """A resource that a node has too little of, in a kubelet's words."""

    reason: str
    message: str


def requests_of(pod: Pod) -> Counter[str]:
    """What a pod asks of its node: its containers and sidecars together, or the largest
    moment of its start, if that is more; plus the overhead."""
    total = _sum(c.resources.requests for c in pod.spec.containers)
    peak: Counter[str] = Counter()
    sidecars: Counter[str] = Counter()
    for container in pod.spec.init_containers or ():
        asked = _sum([container.resources.requests])
        if container.restart_policy == "Always":
            sidecars.update(asked)
            total.update(asked)
            peak |= sidecars
        else:
            peak |= sidecars + asked
    total |= peak
    own = (pod.spec.resources.requests if pod.spec.resources else None) or {}
    total.update({name: amount.milli_value() - total[name] for name, amount in own.items()})
    total.update(_sum([pod.spec.overhead]))
    total["pods"] = 1000
    return total


def _sum(lists: Iterable[ResourceList | None]) -> Counter[str]:
    total: Counter[str] = Counter()
    for found in lists:
        for name, amount in (found or {}).items():
            total[name] += amount.milli_value()
    return total


def shortage(asked: Amounts, used: Amounts, node: Node) -> Shortage | None:
    """The first resource that is not left for what is asked; None if all fits."""
    allocatable = node.status.allocatable or {}
    for name in sorted(asked, key=lambda name: (name != "pods", name != "cpu", name)):
        limit = allocatable.get(name)
        if not asked[name] or (limit is None and "/" in name):
            continue  # an extended resource that the node does not know is not its business
        have = limit.milli_value() if limit is not None else 0
        if asked[name] > have - used.get(name, 0):
            unit = 1 if name == "cpu" else 1000
            counts = (asked[name] // unit, used.get(name, 0) // unit, have // unit)
            text = "Node didn't have enough resource: {}, requested: {}, used: {}, capacity: {}"
            return Shortage(f"OutOf{name}", text.format(name, *counts))
    return None


def qos_class(pod: Pod) -> str:
    """Guaranteed, Burstable or BestEffort: as its status says, else by cpu and memory."""
    if pod.status.qos_class:
        return pod.status.qos_class
    containers = [*pod.spec.containers, *(pod.spec.init_containers or ())]
    if not any(_compute(c.resources.requests) or _compute(c.resources.limits) for c in containers):
        return BEST_EFFORT
    return GUARANTEED if all(map(_is_guaranteed, containers)) else BURSTABLE


def _is_guaranteed(container: Container) -> bool:
    limits = _compute(container.resources.limits)
    requests = _compute(container.resources.requests) or limits
    return len(limits) == 2 and requests == limits


def _compute(found: ResourceList | None) -> ResourceList:
    return {k: v for k, v in (found or {}).items() if k in ("cpu", "memory") and v}
