"""Whether a node is alive: by what was observed of it, never by its own clock.

Source: tryUpdateNodeHealth in pkg/controller/nodelifecycle/node_lifecycle_controller.go,
Kubernetes 1.33. A departure: any change of the lease's renewTime is a sign of life, upstream
wants it to grow, so a lease from the future silences a node until the future has come.
"""

from __future__ import annotations

from datetime import datetime

from kcm.api.coordination_v1 import Lease
from kcm.api.core_v1 import Node, NodeCondition
from kcm.apimachinery.meta_v1 import KubeObject
from kcm.controllers.nodelifecycle.memory import Health
from kcm.controllers.nodelifecycle.taints import ready_condition

_REPORTED = ("Ready", "MemoryPressure", "DiskPressure", "PIDPressure")


def observe(node: Node, lease: Lease | None, saved: Health | None, moment: float) -> Health:
    """What is known of the node by now; `saved` is what the last pass knew of it."""
    found = _observe_status(node, saved, moment)
    renewed = _seconds(lease.spec.renew_time) if lease is not None else 0.0
    if renewed and (saved is None or renewed != saved.renewed):
        return found._replace(probe=moment, renewed=renewed)
    return found


def _observe_status(node: Node, saved: Health | None, moment: float) -> Health:
    ready = ready_condition(node)
    renewed = saved.renewed if saved is not None else 0.0
    if ready is None:
        if saved is not None and not saved.ready:
            return saved
        # Never reported: its time began with its creation. No longer reported: begins now.
        since = _seconds(node.metadata.creation_timestamp) if saved is None else moment
        return Health(node.uid, since, since, "", 0.0, 0.0, renewed)
    heartbeat, changed = _seconds(ready.last_heartbeat_time), _seconds(ready.last_transition_time)
    if saved is None or not saved.ready:
        return Health(node.uid, moment, moment, ready.status, heartbeat, changed, renewed)
    if saved.heartbeat == heartbeat:
        return saved if saved.ready == ready.status else saved._replace(ready=ready.status)
    transition = saved.transition if saved.since == changed else moment
    return Health(node.uid, moment, transition, ready.status, heartbeat, changed, renewed)


def _seconds(time: datetime | None) -> float:
    return time.timestamp() if time is not None else 0.0


def silenced(heartbeat: float, now: datetime, obj: KubeObject) -> KubeObject:
    """The node with what a silent kubelet would report set to Unknown; as it is when it
    has spoken since (its heartbeat is another than the one that was judged)."""
    assert isinstance(obj, Node)
    ready = ready_condition(obj)
    if _seconds(ready.last_heartbeat_time if ready is not None else None) != heartbeat:
        return obj
    if ready is not None and ready.status == "Unknown":
        return obj
    known = {c.type: c for c in obj.status.conditions or ()}
    stamp = now.replace(microsecond=0)
    for type in _REPORTED:
        known[type] = _unknown(known.get(type), type, obj, stamp)
    return obj.with_status(obj.status.replace(conditions=list(known.values())))


def _unknown(present: NodeCondition | None, type: str, node: Node, now: datetime) -> NodeCondition:
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
