"""A node as the scheduler uses it: what it offers, and what its pods request.

Source: pkg/scheduler/framework/types.go (NodeInfo, HostPortInfo), Kubernetes 1.33.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from functools import lru_cache

from kcm.api.core_v1 import Node, Pod, Taint
from kcm.api.storage_v1 import claim_keys
from kcm.apimachinery.ownership import controller_of
from kcm.controllers.scheduler.podterms import NO_TERMS, PodTerms, terms_of
from kcm.controllers.scheduler.resources import (
    CPU,
    MEMORY,
    PODS,
    STORAGE,
    PodRequests,
    amounts,
    requests_of,
    reserve_resized,
)
from kcm.helpers.pods import condition_of, is_sidecar, is_terminal

# --- A pod as the scheduler uses it: what its scheduling depends on, computed once.
#
# Source: pkg/scheduler/framework/types.go (PodInfo), Kubernetes 1.33.


_LONG_AGO = datetime.min.replace(tzinfo=UTC)

Port = tuple[str, str, int]  # host IP, protocol, port


class PodInfo:
    """What the scheduler needs of one pod.

    It keeps the cached object only while the pod waits for a node: between passes the caches
    replace their objects, and old ones that are kept here would take memory.
    """

    __slots__ = (
        "_source", "claims", "created", "deleting", "generation", "is_preempted",
        "is_resized", "labels", "name",
        "namespace", "node", "nominated", "ports", "priority", "requests", "started", "terms",
        "uid", "version",
    )  # fmt: skip

    def __init__(self, pod: Pod) -> None:
        spec, meta = pod.spec, pod.metadata
        self.uid = meta.uid or ""
        self.namespace = meta.namespace or ""
        self.name = meta.name or ""
        # Pods without a creation time count as the oldest.
        self.created: datetime = meta.creation_timestamp or _LONG_AGO
        self.labels = meta.labels or _NO_LABELS
        self.generation = meta.generation
        self.deleting = meta.deletion_timestamp is not None
        self.node = spec.node_name or ""
        self.nominated = pod.status.nominated_node_name or ""
        self.priority = spec.priority or 0
        reserved = reserve_resized(pod)
        self.is_resized = reserved is not spec  # its status will change what counts
        self.requests: PodRequests = _share(requests_of(reserved))
        self.ports: tuple[Port, ...] = _ports(pod)
        self.claims: tuple[str, ...] = tuple(claim_keys(pod)) if spec.volumes else ()
        self.terms: PodTerms = NO_TERMS
        if spec.affinity:
            self.terms = terms_of(spec.affinity, self.namespace)
        self.follow(pod)

    def follow(self, pod: Pod) -> None:
        """Sets the fields that can change without a new PodInfo; see `is_current`."""
        self.version = pod.metadata.resource_version
        self.started = pod.status.start_time  # when the kubelet first saw it
        self.is_preempted = self.deleting and _is_preempted(pod)
        self._source = None if self.node else pod

    @property
    def source(self) -> Pod:
        """The cached object of a pod that waits or was bound in this pass."""
        assert self._source is not None
        return self._source

    @property
    def key(self) -> str:
        return f"{self.namespace}/{self.name}"

    def is_made_from(self, pod: Pod) -> bool:
        """Reports whether it was made from this version of the pod."""
        return self.version is not None and self.version == pod.metadata.resource_version

    def is_current(self, pod: Pod) -> bool:
        """Reports whether it holds for a newer version, except for what `follow` sets."""
        meta = pod.metadata
        return (
            meta.generation == self.generation
            and meta.generation is not None
            and not self.is_resized
            and (pod.spec.node_name or "") == self.node
            and (meta.deletion_timestamp is not None) == self.deleting
            and (pod.status.nominated_node_name or "") == self.nominated
            and (meta.labels or _NO_LABELS) == self.labels
            and not is_terminal(pod)
        )


def _is_preempted(pod: Pod) -> bool:
    """Reports whether the pod is deleted because the scheduler preempted it."""
    target = condition_of(pod.status, "DisruptionTarget")
    return (
        target is not None and target.status == "True" and target.reason == "PreemptionByScheduler"
    )


@lru_cache(maxsize=1024)
def _share(requests: PodRequests) -> PodRequests:
    """Returns one object for equal requests, since many pods have the same."""
    return requests


def owner_of(pod: Pod) -> tuple[str, str, str]:
    """Returns kind, name and uid of the pod's controller, "" for each if it has none."""
    owner = controller_of(pod)
    return ("", "", "") if owner is None else (owner.kind, owner.name, owner.uid or "")


def _ports(pod: Pod) -> tuple[Port, ...]:
    sidecars = [c for c in pod.spec.init_containers or () if is_sidecar(c)]
    ports = [
        (port.host_ip or "0.0.0.0", port.protocol or "TCP", port.host_port)
        for container in (*pod.spec.containers, *sidecars)
        for port in container.ports or ()
        if port.host_port
    ]
    return tuple(ports)


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
