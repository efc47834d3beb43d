"""Binds a pod to a node, for the subresource pods/binding and the scheduler.

Source: BindingREST in pkg/registry/core/pod/storage/storage.go, Kubernetes 1.33.
"""

from __future__ import annotations

from datetime import datetime

from kcm import errors
from kcm.api.core_v1 import Pod, PodCondition


def bind_to_node(pod: Pod, node: str, now: datetime) -> Pod:
    """Returns the pod bound to the node.

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
    return placed.with_status(pod.status.replace(conditions=[*others, scheduled]))


def _why_not(pod: Pod) -> str | None:
    if pod.deleting:
        return f"pod {pod.name} is being deleted, cannot be assigned to a host"
    if pod.spec.node_name:
        return f'pod {pod.name} is already assigned to node "{pod.spec.node_name}"'
    if pod.spec.scheduling_gates:
        return f"pod {pod.name} has non-empty .spec.schedulingGates"
    return None
