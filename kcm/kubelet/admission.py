"""Whether a pod may run on this node: pure.

Source: pkg/kubelet/lifecycle/predicate.go, Kubernetes 1.33.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from kcm.api.core_v1 import Node, Pod
from kcm.kubelet.kuberuntime.configs import host_ports
from kcm.kubelet.runtime.process.ports import clash
from kcm.kubelet.types import is_static_pod
from kcm.reconcile.nodeaffinity import NodeRule
from kcm.reconcile.podresources import requests_of, shortage
from kcm.reconcile.tolerations import tolerates


@dataclass(frozen=True)
class Refusal:
    """Why a pod may not run: both for people and for programs."""

    reason: str
    message: str


Handler = Callable[[Pod, Sequence[Pod]], Refusal | None]


def predicates(pod: Pod, others: Sequence[Pod], node: Node) -> Refusal | None:
    """Of the node's resources, labels, ports and taints, the first that forbids the pod."""
    return (
        _resources(pod, others, node)
        or _labels(pod, node)
        or _ports(pod, others)
        or _taints(pod, node)
    )


def _predicate(name: str, words: str) -> Refusal:
    return Refusal(name, f"Predicate {name} failed: {words}")


def _labels(pod: Pod, node: Node) -> Refusal | None:
    rule = NodeRule.of(pod.spec.node_selector, pod.spec.affinity)
    if rule.matches(node.labels, node.name or ""):
        return None
    return _predicate("NodeAffinity", "node(s) didn't match Pod's node affinity/selector")


def _ports(pod: Pod, others: Iterable[Pod]) -> Refusal | None:
    taken = [port for other in others for port in host_ports(other)]
    if clash(host_ports(pod), taken) is None:
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


def _resources(pod: Pod, others: Iterable[Pod], node: Node) -> Refusal | None:
    if not node.status.allocatable:
        return None  # the node has not been looked at yet
    used: Counter[str] = Counter()
    for other in others:
        used.update(requests_of(other))
    found = shortage(requests_of(pod), used, node)
    return Refusal(found.reason, found.message) if found else None
