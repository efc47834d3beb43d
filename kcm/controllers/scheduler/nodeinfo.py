"""A node as the scheduler uses it: what it offers, and what its pods request.

Source: pkg/scheduler/framework/types.go (NodeInfo, HostPortInfo), Kubernetes 1.33.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from kcm.api.core_v1 import Node, Taint
from kcm.controllers.scheduler.podinfo import PodInfo, Port
from kcm.controllers.scheduler.resources import CPU, MEMORY, PODS, STORAGE, amounts

_ANY = "0.0.0.0"
_NO_LABELS: Mapping[str, str] = {}
ZONE, REGION = "topology.kubernetes.io/zone", "topology.kubernetes.io/region"


class NodeInfo:
    """One node and the pods on it. `node` is None if only its pods are known."""

    __slots__ = (
        "claims", "cpu", "images", "index", "labels", "memory", "name", "node", "others",
        "pods", "pods_max", "ports", "scoring_cpu", "scoring_memory", "storage", "taints",
        "uid", "unschedulable", "used_cpu", "used_memory", "used_others", "used_storage",
    )  # fmt: skip

    def __init__(self, name: str) -> None:
        self.name = name
        self.index = -1  # its index among the snapshot's nodes
        self.pods: dict[str, PodInfo] = {}  # keyed by uid
        self.used_cpu = self.used_memory = self.used_storage = 0
        self.scoring_cpu = self.scoring_memory = 0
        self.used_others: dict[str, int] = {}
        self.ports: Counter[Port] = Counter()
        self.claims: Counter[str] = Counter()  # of the pods, by key
        self.forget()

    def forget(self) -> None:
        """Forgets the Node object, which is gone. The pods stay."""
        self.node: Node | None = None
        self.uid = ""
        self.labels = _NO_LABELS
        self.taints: tuple[Taint, ...] = ()
        self.unschedulable = False
        self.cpu = self.memory = self.storage = self.pods_max = 0
        self.others: dict[str, int] = {}
        self.images: dict[str, int] = {}

    def set_node(self, node: Node) -> None:
        """Sets what depends on the Node object: labels, taints, resources and images."""
        self.node = node
        self.uid = node.uid
        self.labels = node.metadata.labels or _NO_LABELS
        self.taints = tuple(node.spec.taints or ())
        self.unschedulable = bool(node.spec.unschedulable)
        offered = amounts(node.status.allocatable)
        self.cpu = offered.pop(CPU, 0)
        self.memory = offered.pop(MEMORY, 0)
        self.storage = offered.pop(STORAGE, 0)
        self.pods_max = offered.pop(PODS, 0)
        self.others = offered
        self.images = images_of(node)

    @property
    def zone(self) -> str:
        """The node's region and zone as one text. Zones take turns in the search for nodes."""
        return f"{self.labels.get(REGION, '')}:{self.labels.get(ZONE, '')}"

    def add(self, pod: PodInfo) -> None:
        """Adds a pod, with its requests, host ports and claims."""
        self.pods[pod.uid] = pod
        self._count(pod, 1)

    def remove(self, pod: PodInfo) -> None:
        """Removes a pod, with its requests, host ports and claims."""
        del self.pods[pod.uid]
        self._count(pod, -1)

    def _count(self, pod: PodInfo, sign: int) -> None:
        requests = pod.requests
        self.used_cpu += sign * requests.cpu
        self.used_memory += sign * requests.memory
        self.used_storage += sign * requests.storage
        self.scoring_cpu += sign * requests.scoring_cpu
        self.scoring_memory += sign * requests.scoring_memory
        for name, amount in requests.others:
            self.used_others[name] = self.used_others.get(name, 0) + sign * amount
        for port in pod.ports:
            self.ports[port] += sign
            if not self.ports[port]:
                del self.ports[port]
        for key in pod.claims:
            self.claims[key] += sign
            if not self.claims[key]:
                del self.claims[key]

    def conflicts(self, ports: Iterable[Port]) -> bool:
        """Reports whether one of the host ports is taken, on the same or on all addresses."""
        if not self.ports:
            return False
        for ip, protocol, number in ports:
            for other_ip, other_protocol, other_number in self.ports:
                if number != other_number or protocol != other_protocol:
                    continue
                if ip == other_ip or _ANY in (ip, other_ip):
                    return True
        return False


def images_of(node: Node) -> dict[str, int]:
    """Returns the images on a node: their sizes in bytes, by each of their names."""
    return {
        name: image.size_bytes or 0 for image in node.status.images or () for name in image.names
    }
