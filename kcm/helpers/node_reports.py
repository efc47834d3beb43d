"""The statuses and leases that kubelets report for their nodes, real or simulated.

Source: pkg/kubelet/kubelet_node_status.go, pkg/kubelet/nodestatus/setters.go and
staging/src/k8s.io/component-helpers/apimachinery/lease, Kubernetes 1.33.
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from datetime import datetime

from kcm.api.coordination_v1 import Lease, LeaseSpec
from kcm.api.core_v1 import Node, NodeCondition, NodeStatus
from kcm.apimachinery.meta_v1 import ObjectMeta, OwnerReference
from kcm.apimachinery.quantity import Quantity, ResourceList

LEASE_NAMESPACE = "kube-node-lease"

_EVENTS = {
    ("Ready", "True"): "NodeReady",
    ("Ready", "False"): "NodeNotReady",
    ("MemoryPressure", "True"): "NodeHasInsufficientMemory",
    ("MemoryPressure", "False"): "NodeHasSufficientMemory",
    ("DiskPressure", "True"): "NodeHasDiskPressure",
    ("DiskPressure", "False"): "NodeHasNoDiskPressure",
    ("PIDPressure", "True"): "NodeHasInsufficientPID",
    ("PIDPressure", "False"): "NodeHasSufficientPID",
}

_PRESSURE_REASONS = {  # reason and message if the condition is True, and if it is False
    "MemoryPressure": (
        ("KubeletHasInsufficientMemory", "kubelet has insufficient memory available"),
        ("KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
    ),
    "DiskPressure": (
        ("KubeletHasDiskPressure", "kubelet has disk pressure"),
        ("KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
    ),
    "PIDPressure": (
        ("KubeletHasInsufficientPID", "kubelet has insufficient PID available"),
        ("KubeletHasSufficientPID", "kubelet has sufficient PID available"),
    ),
}


def condition(
    kind: str, holds: bool, why: tuple[str, str], before: NodeStatus, now: datetime
) -> NodeCondition:
    """Returns a node condition, which is True if it `holds`. `why` is its reason and message.

    Its transition time is that of the condition in `before` if the status is the same.
    """
    status = "True" if holds else "False"
    old = next((c for c in before.conditions or () if c.type == kind), None)
    same = old is not None and old.status == status
    since = old.last_transition_time if old is not None and same else None
    return NodeCondition(
        type=kind,
        status=status,
        last_heartbeat_time=now,
        last_transition_time=since or now,
        reason=why[0],
        message=why[1],
    )


def ready_status(node: Node) -> str:
    """Returns the status of the node's Ready condition, "Unknown" if it has none."""
    conditions = node.status.conditions or ()
    return next((c.status for c in conditions if c.type == "Ready"), "Unknown")


def pressure_conditions(
    pressures: Container[str], before: NodeStatus, now: datetime
) -> list[NodeCondition]:
    """Returns the conditions MemoryPressure, DiskPressure and PIDPressure.

    Those that `pressures` contains are True, the others False.
    """
    conditions = []
    for kind, (while_pressed, while_relaxed) in _PRESSURE_REASONS.items():
        holds = kind in pressures
        reason = while_pressed if holds else while_relaxed
        conditions.append(condition(kind, holds, reason, before, now))
    return conditions


def resources_of(
    before: NodeStatus, own: Mapping[str, Quantity], reserved: Mapping[str, Quantity]
) -> tuple[ResourceList, ResourceList]:
    """Returns the node's capacity and allocatable resources.

    The capacity consists of `own`, which the kubelet has determined, and of what others have
    written into it, such as extended resources. Allocatable is the capacity minus `reserved`, at
    least zero.

    Source: MachineInfo in pkg/kubelet/nodestatus/setters.go.
    """
    capacity = {**(before.capacity or {}), **own}
    allocatable = dict(capacity)
    for name, amount in reserved.items():
        if name in allocatable:
            allocatable[name] = max(allocatable[name] - amount, Quantity())
    return capacity, allocatable


def differs(new: NodeStatus, old: NodeStatus) -> bool:
    """Reports whether the statuses differ in more than the heartbeat times of conditions."""
    before = [c.replace(last_heartbeat_time=None) for c in old.conditions or ()]
    after = [c.replace(last_heartbeat_time=None) for c in new.conditions or ()]
    return new.replace(conditions=after) != old.replace(conditions=before)


def transitions(new: NodeStatus, old: NodeStatus) -> list[str]:
    """Returns the reasons of the Events about conditions whose status has changed."""
    before = {c.type: c.status for c in old.conditions or ()}
    return [
        _EVENTS[c.type, c.status]
        for c in new.conditions or ()
        if (c.type, c.status) in _EVENTS and before.get(c.type) != c.status
    ]


def new_lease(node: Node, seconds: int, now: datetime) -> Lease:
    """Returns the first lease of a node, owned by the node. `seconds` is its duration."""
    owner = OwnerReference(api_version="v1", kind="Node", name=node.name or "", uid=node.uid or "")
    return Lease(
        metadata=ObjectMeta(name=node.name, namespace=LEASE_NAMESPACE, owner_references=[owner]),
        spec=LeaseSpec(holder_identity=node.name, lease_duration_seconds=seconds, renew_time=now),
    )


def renew_lease(lease: Lease, node: Node, seconds: int, now: datetime) -> Lease:
    """Returns the renewed lease. Its owner is the node, also if that was created anew."""
    owners = lease.metadata.owner_references or []
    if [owner.uid for owner in owners] != [node.uid]:
        first = new_lease(node, seconds, now)
        lease = lease.with_metadata(owner_references=first.metadata.owner_references)
    return lease.with_spec(
        lease.spec.replace(
            holder_identity=node.name, lease_duration_seconds=seconds, renew_time=now
        )
    )
