"""Computes the health of a node from changes that were observed, never by the node's own clock.

Source: tryUpdateNodeHealth in pkg/controller/nodelifecycle/node_lifecycle_controller.go, Kubernetes
1.33. Departure: any change of the lease's renewTime counts as a heartbeat. Upstream requires it to
grow, so after a lease with a time in the future no heartbeat counts until that time.
"""

from __future__ import annotations

from datetime import datetime

from kcm.api.coordination_v1 import Lease
from kcm.api.core_v1 import Node, NodeCondition
from kcm.controllers.nodelifecycle.memory import NodeHealth
from kcm.controllers.nodelifecycle.taints import ready_condition

_REPORTED = ("Ready", "MemoryPressure", "DiskPressure", "PIDPressure")


def observe(node: Node, lease: Lease | None, saved: NodeHealth | None, moment: float) -> NodeHealth:
    """Returns the health of the node now. `saved` is its health in the last pass, None if it is
    new.

    `moment` is in seconds on the clock of Redis.
    """
    health = _observe_status(node, saved, moment)
    renewed = _seconds(lease.spec.renew_time) if lease is not None else 0.0
    if renewed and (saved is None or renewed != saved.renewed):
        return health._replace(probe=moment, renewed=renewed)
    return health


def _observe_status(node: Node, saved: NodeHealth | None, moment: float) -> NodeHealth:
    ready = ready_condition(node)
    renewed = saved.renewed if saved is not None else 0.0
    if ready is None:
        if saved is not None and not saved.ready:
            return saved
        # The grace period of a node that has never reported begins with its creation, that of a
        # node that no longer has the condition begins now.
        since = _seconds(node.metadata.creation_timestamp) if saved is None else moment
        return NodeHealth(node.uid, since, since, "", 0.0, 0.0, renewed)
    heartbeat, changed = _seconds(ready.last_heartbeat_time), _seconds(ready.last_transition_time)
    if saved is None or not saved.ready:
        return NodeHealth(node.uid, moment, moment, ready.status, heartbeat, changed, renewed)
    if saved.heartbeat == heartbeat:
        return saved if saved.ready == ready.status else saved._replace(ready=ready.status)
    transition = saved.transition if saved.since == changed else moment
    return NodeHealth(node.uid, moment, transition, ready.status, heartbeat, changed, renewed)


def _seconds(time: datetime | None) -> float:
    return time.timestamp() if time is not None else 0.0


def mark_unknown(heartbeat: float, now: datetime, obj: Node) -> Node:
    """Returns the node with the conditions that its kubelet reports set to Unknown.

    Returns it unchanged if its heartbeat is not `heartbeat`, because the kubelet has reported
    since.
    """
    ready = ready_condition(obj)
    if _seconds(ready.last_heartbeat_time if ready is not None else None) != heartbeat:
        return obj
    if ready is not None and ready.status == "Unknown":
        return obj
    by_type = {c.type: c for c in obj.status.conditions or ()}
    stamp = now.replace(microsecond=0)
    for type in _REPORTED:
        by_type[type] = _unknown_condition(by_type.get(type), type, obj, stamp)
    return obj.with_status(obj.status.replace(conditions=list(by_type.values())))


def _unknown_condition(
    present: NodeCondition | None, type: str, node: Node, now: datetime
) -> NodeCondition:
    if present is None:
        return NodeCondition(
            type=type,
            status="Unknown",
            reason="NodeStatusNeverUpdated",
            message="Kubelet never posted node status.",
            last_heartbeat_time=node.metadata.creation_timestamp,
            last_transition_time=now,
        )
    if present.status == "Unknown":
        return present
    return present.replace(
        status="Unknown",
        reason="NodeStatusUnknown",
        message="Kubelet stopped posting node status.",
        last_transition_time=now,
    )
