"""What every kubelet reports of its node in the same way, real or simulated: pure.

Source: pkg/kubelet/kubelet_node_status.go, pkg/kubelet/nodestatus/setters.go and
staging/src/k8s.io/component-helpers/apimachinery/lease, Kubernetes 1.33.
"""

from __future__ import annotations

from collections.abc import Mapping
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


def condition(
    kind: str, holds: bool, why: tuple[str, str], before: NodeStatus, now: datetime
) -> NodeCondition:
    """A condition, `why` its reason and message; its transition time stays while its status
    does."""
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


def resources_of(
    before: NodeStatus, own: Mapping[str, Quantity], reserved: Mapping[str, Quantity]
) -> tuple[ResourceList, ResourceList]:
    """Capacity and allocatable: what the kubelet counts itself, and what others have written
    into the capacity of the node, such as an extended resource.

    What can be given to pods is the capacity without what is reserved, never below zero. A
    resource that is no longer in the capacity can no longer be given.
    Source: MachineInfo in pkg/kubelet/nodestatus/setters.go.
    """
    capacity = {**(before.capacity or {}), **own}
    allocatable = dict(capacity)
    for name, amount in reserved.items():
        if name in allocatable:
            allocatable[name] = max(allocatable[name] - amount, Quantity())
    return capacity, allocatable


def differs(new: NodeStatus, old: NodeStatus) -> bool:
    """Whether there is more to report than that the node is alive."""
    before = [c.replace(last_heartbeat_time=None) for c in old.conditions or ()]
    after = [c.replace(last_heartbeat_time=None) for c in new.conditions or ()]
    return new.replace(conditions=after) != old.replace(conditions=before)


def transitions(new: NodeStatus, old: NodeStatus) -> list[str]:
    """The reasons of the Events that tell of changed conditions."""
    before = {c.type: c.status for c in old.conditions or ()}
    return [
        _EVENTS[c.type, c.status]
        for c in new.conditions or ()
        if (c.type, c.status) in _EVENTS and before.get(c.type) != c.status
    ]


def lease_of(node: Node, seconds: int, now: datetime) -> Lease:
    """A node's first lease; it goes with its node."""
    owner = OwnerReference(api_version="v1", kind="Node", name=node.name or "", uid=node.uid or "")
    return Lease(
        metadata=ObjectMeta(name=node.name, namespace=LEASE_NAMESPACE, owner_references=[owner]),
        spec=LeaseSpec(holder_identity=node.name, lease_duration_seconds=seconds, renew_time=now),
    )


def renewed(lease: Lease, node: Node, seconds: int, now: datetime) -> Lease:
    """The lease, renewed; with its node as owner, should that be another than before."""
    owners = lease.metadata.owner_references or []
    if [owner.uid for owner in owners] != [node.uid]:
        first = lease_of(node, seconds, now)
        lease = lease.with_metadata(owner_references=first.metadata.owner_references)
    return lease.with_spec(
        lease.spec.replace(
            holder_identity=node.name, lease_duration_seconds=seconds, renew_time=now
        )
    )
