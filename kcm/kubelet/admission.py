"""Pod admission: the node's decision whether it can run a pod that is bound to it. Pure functions.

Source: pkg/kubelet/lifecycle/predicate.go, and canResizePod in pkg/kubelet/kubelet.go, Kubernetes
1.33.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from kcm.api.core_v1 import Node, Pod, PodStatus
from kcm.api.pods.qos import qos_class
from kcm.helpers.nodeaffinity import NodeRule
from kcm.helpers.podresources import find_shortage, requests_of
from kcm.helpers.tolerations import is_tolerated
from kcm.kubelet.cri import PortMapping
from kcm.kubelet.host_ports import find_conflict
from kcm.kubelet.kuberuntime.configs import host_port_mappings
from kcm.kubelet.resizing import DEFERRED, INFEASIBLE, Refusal
from kcm.kubelet.status.phase import FAILED
from kcm.kubelet.types import is_static_pod

NODE_AFFINITY = "NodeAffinity"  # a reason


@dataclass(frozen=True)
class Rejection:
    """Why the node rejects a pod: a reason for programs and a message for people."""

    reason: str
    message: str


AdmitHandler = Callable[[Pod, Sequence[Pod]], Rejection | None]
"""Admits or rejects a pod, given the node's other active pods. Returns None to admit it."""


@dataclass(slots=True, weakref_slot=True)
class NodeUsage:
    """The resources and host ports that one or more pods occupy on their node."""

    requests: Counter[str] = field(default_factory=Counter)  # as requests_of counts them
    ports: list[PortMapping] = field(default_factory=list)

    @classmethod
    def of(cls, pods: Iterable[Pod]) -> NodeUsage:
        """Returns the sum of what the pods occupy."""
        usage = cls()
        for pod in pods:
            usage.requests.update(requests_of(pod))
            usage.ports += host_port_mappings(pod)
        return usage

    def add(self, other: NodeUsage) -> None:
        """Adds the resources and ports of another usage."""
        self.requests.update(other.requests)
        self.ports += other.ports

    def subtract(self, other: NodeUsage) -> None:
        """Subtracts a usage that was added before."""
        self.requests.subtract(other.requests)
        for port in other.ports:
            self.ports.remove(port)


def check_predicates(
    pod: Pod, requested: NodeUsage, used: NodeUsage, node: Node
) -> Rejection | None:
    """Returns why the node cannot run the pod, or None if it can.

    `requested` is what the pod requests, `used` is what the node's other pods occupy. Resources,
    node affinity, host ports and taints are checked in this order, and the first failure is
    returned.
    """
    return (
        _check_resources(requested, used, node)
        or _check_node_affinity(pod, node)
        or _check_host_ports(requested, used)
        or _check_taints(pod, node)
    )


def find_resize_refusal(pod: Pod, used: NodeUsage, node: Node) -> Refusal | None:
    """Returns why the node cannot give the pod what its spec asks for, None if it can.

    `used` is what the node's other pods occupy.
    """
    allocatable, asked = node.status.allocatable or {}, requests_of(pod)
    for name in ("memory", "cpu"):
        capacity = allocatable.get(name)
        if capacity is not None and asked[name] > capacity.milli_value():
            unit = 1 if name == "cpu" else 1000
            text = f"{name}, requested: {asked[name] // unit}, "
            text += f"capacity: {capacity.milli_value() // unit}"
            return Refusal(INFEASIBLE, f"Node didn't have enough capacity: {text}")
    rejection = check_predicates(pod, NodeUsage.of([pod]), used, node)
    return None if rejection is None else Refusal(DEFERRED, rejection.message)


def build_rejected_status(pod: Pod, rejection: Rejection) -> PodStatus:
    """Returns the status of a pod that the node has rejected: its phase is Failed."""
    return pod.status.replace(
        phase=FAILED,
        reason=rejection.reason,
        message=f"Pod was rejected: {rejection.message}",
        qos_class=qos_class(pod),
    )


def _fail(predicate: str, message: str) -> Rejection:
    return Rejection(predicate, f"Predicate {predicate} failed: {message}")


def _check_resources(requested: NodeUsage, used: NodeUsage, node: Node) -> Rejection | None:
    if not node.status.allocatable:
        return None  # the node has not reported its allocatable resources yet
    missing = find_shortage(requested.requests, used.requests, node)
    return Rejection(missing.reason, missing.message) if missing else None


def _check_node_affinity(pod: Pod, node: Node) -> Rejection | None:
    rule = NodeRule.of(pod.spec.node_selector, pod.spec.affinity)
    if rule.matches(node.labels, node.name or ""):
        return None
    return _fail(NODE_AFFINITY, "node(s) didn't match Pod's node affinity/selector")


def _check_host_ports(requested: NodeUsage, used: NodeUsage) -> Rejection | None:
    if find_conflict(requested.ports, used.ports) is None:
        return None
    return _fail("NodePorts", "node(s) didn't have free ports for the requested pod ports")


def _check_taints(pod: Pod, node: Node) -> Rejection | None:
    """Returns a rejection if the pod does not tolerate a NoExecute taint of the node.

    Static pods are admitted in spite of such taints.
    """
    if is_static_pod(pod):
        return None
    for taint in node.spec.taints or ():
        if taint.effect == "NoExecute" and not is_tolerated(taint, pod.spec.tolerations or ()):
            message = "node(s) had taints that the pod didn't tolerate"
            return _fail("TaintToleration", message)
    return None
