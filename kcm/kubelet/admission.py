"""Whether a pod may run on this node: pure.

Source: pkg/kubelet/lifecycle/predicate.go, Kubernetes 1.33.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from kcm.api.core_v1 import Node, Pod, PodStatus
from kcm.helpers.nodeaffinity import NodeRule
from kcm.helpers.podresources import find_shortage, qos_class, requests_of
from kcm.helpers.tolerations import tolerates
from kcm.kubelet.cri import PortMapping
from kcm.kubelet.host_ports import clash
from kcm.kubelet.kuberuntime.configs import host_ports
from kcm.kubelet.status.phase import FAILED
from kcm.kubelet.types import is_static_pod


@dataclass(frozen=True)
class Refusal:
    """Why a pod may not run: both for people and for programs."""

    reason: str
    message: str


Handler = Callable[[Pod, Sequence[Pod]], Refusal | None]


@dataclass(slots=True, weakref_slot=True)
class Taken:
    """What pods take of their node."""

    amounts: Counter[str] = field(default_factory=Counter)
    ports: list[PortMapping] = field(default_factory=list)

    @classmethod
    def of(cls, pods: Iterable[Pod]) -> Taken:
        """What these pods take together."""
        found = cls()
        for pod in pods:
            found.amounts.update(requests_of(pod))
            found.ports += host_ports(pod)
        return found

    def add(self, other: Taken) -> None:
        self.amounts.update(other.amounts)
        self.ports += other.ports

    def give_back(self, other: Taken) -> None:
        self.amounts.subtract(other.amounts)
        for port in other.ports:
            self.ports.remove(port)


def predicates(pod: Pod, asked: Taken, taken: Taken, node: Node) -> Refusal | None:
    """Of the node's resources, labels, ports and taints, the first that forbids the pod, which
    asks for so much; `taken` is what the others have."""
    return (
        _resources(asked, taken, node)
        or _labels(pod, node)
        or _ports(asked, taken)
        or _taints(pod, node)
    )


def rejected(pod: Pod, refusal: Refusal) -> PodStatus:
    """The status of a pod that was refused."""
    return pod.status.replace(
        phase=FAILED,
        reason=refusal.reason,
        message=f"Pod was rejected: {refusal.message}",
        qos_class=qos_class(pod),
    )


def _predicate(name: str, words: str) -> Refusal:
    return Refusal(name, f"Predicate {name} failed: {words}")


def _labels(pod: Pod, node: Node) -> Refusal | None:
    rule = NodeRule.of(pod.spec.node_selector, pod.spec.affinity)
    if rule.matches(node.labels, node.name or ""):
        return None
    return _predicate("NodeAffinity", "node(s) didn't match Pod's node affinity/selector")


def _ports(asked: Taken, taken: Taken) -> Refusal | None:
    if clash(asked.ports, taken.ports) is None:
        return None
    return _predicate("NodePorts", "node(s) didn't have free ports for the requested pod ports")


def _taints(pod: Pod, node: Node) -> Refusal | None:
    """Static pods stay, whatever the taints."""
    if is_static_pod(pod):
        return None
    for taint in node.spec.taints or ():
        if taint.effect == "NoExecute" and not any(
            tolerates(toleration, taint) for toleration in pod.spec.tolerations or ()
        ):
            words = f"node(s) had untolerated taint {{{taint.key}: {taint.value or ''}}}"
            return _predicate("TaintToleration", words)
    return None


def _resources(asked: Taken, taken: Taken, node: Node) -> Refusal | None:
    if not node.status.allocatable:
        return None  # the node has not been looked at yet
    found = find_shortage(asked.amounts, taken.amounts, node)
    return Refusal(found.reason, found.message) if found else None
