"""Binds a pod to a node, for the subresource pods/binding and the scheduler.

Source: BindingREST in pkg/registry/core/pod/storage/storage.go, Kubernetes 1.36.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from kcm import errors
from kcm.api.core_v1 import Pod, PodCondition

_TOPOLOGY = ("topology.kubernetes.io/region", "topology.kubernetes.io/zone")


def choose_topology_labels(labels: Mapping[str, str]) -> Mapping[str, str]:
    """Returns those of a node's labels that its pods have, too."""
    return {name: labels[name] for name in _TOPOLOGY if name in labels}


def bind_to_node(
    pod: Pod, node: str, now: datetime, labels: Mapping[str, str] | None = None
) -> Pod:
    """Returns the pod bound to the node, with these labels as well.

    Raises: Conflict for a pod that is bound, is being deleted, or has scheduling gates.
    """
    why = _why_not(pod)
    if why:
        raise errors.Conflict.of("pods/binding", pod.name, why)
    scheduled = PodCondition(
        type="PodScheduled", status="True", last_transition_time=now.replace(microsecond=0)
    )
    others = [c for c in pod.status.conditions or () if c.type != "PodScheduled"]
    placed = pod.with_spec(pod.spec.replace(node_name=node))
    if labels:
        placed = placed.with_metadata(labels={**pod.labels, **labels})
    return placed.with_status(pod.status.replace(conditions=[*others, scheduled]))


def _why_not(pod: Pod) -> str | None:
    if pod.deleting:
        return f"pod {pod.name} is being deleted, cannot be assigned to a host"
    if pod.spec.node_name:
        return f'pod {pod.name} is already assigned to node "{pod.spec.node_name}"'
    if pod.spec.scheduling_gates:
        return f"pod {pod.name} has non-empty .spec.schedulingGates"
    return None
