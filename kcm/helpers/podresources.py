"""The resource requests of pods, and whether a node has them.

Amounts are in thousandths of the resource's unit.

Source: staging/src/k8s.io/component-helpers/resource/helpers.go and
pkg/kubelet/lifecycle/predicate.go, Kubernetes 1.33.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from kcm.api.core_v1 import Node, Pod
from kcm.api.pods.resources import list_pod_level
from kcm.apimachinery.quantity import ResourceList
from kcm.helpers.pods import is_sidecar

Amounts = Mapping[str, int]


class Shortage(NamedTuple):
    """A resource of which a node has too little, as reason and message of the kubelet."""

    reason: str
    message: str


def requests_of(pod: Pod) -> Counter[str]:
    """Returns the requests of a pod in thousandths of their units, and 1000 (one pod) for `pods`.

    They are the sum over containers and sidecars, or the largest sum while init containers run if
    that is more, plus the overhead. Requests of the whole pod replace these sums.
    """
    total = _sum(c.resources.requests for c in pod.spec.containers)
    peak: Counter[str] = Counter()
    sidecars: Counter[str] = Counter()
    for container in pod.spec.init_containers or ():
        asked = _sum([container.resources.requests])
        if is_sidecar(container):
            sidecars.update(asked)
            total.update(asked)
            peak |= sidecars
        else:
            peak |= sidecars + asked
    total |= peak
    for name, amount in list_pod_level(pod.spec, "requests").items():
        total[name] = amount.milli_value()
    total.update(_sum([pod.spec.overhead]))
    total["pods"] = 1000
    return total


def _sum(lists: Iterable[ResourceList | None]) -> Counter[str]:
    total: Counter[str] = Counter()
    for amounts in lists:
        for name, amount in (amounts or {}).items():
            total[name] += amount.milli_value()
    return total


def find_shortage(asked: Amounts, used: Amounts, node: Node) -> Shortage | None:
    """Returns the first requested resource of which the node has too little left, or None.

    `used` is what the node's other pods request.
    """
    allocatable = node.status.allocatable or {}
    for name in sorted(asked, key=lambda name: (name != "pods", name != "cpu", name)):
        limit = allocatable.get(name)
        if not asked[name] or (limit is None and "/" in name):
            # An extended resource that the node does not have is not checked here, as upstream.
            continue
        have = limit.milli_value() if limit is not None else 0
        if asked[name] > have - used.get(name, 0):
            unit = 1 if name == "cpu" else 1000
            counts = (asked[name] // unit, used.get(name, 0) // unit, have // unit)
            text = "Node didn't have enough resource: {}, requested: {}, used: {}, capacity: {}"
            return Shortage(f"OutOf{name}", text.format(name, *counts))
    return None
