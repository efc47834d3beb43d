"""What a pass decided, as writes and Events.

Source: pkg/scheduler/schedule_one.go (handleSchedulingFailure, bindingCycle) and
pkg/scheduler/framework/preemption/preemption.go (prepareCandidate), Kubernetes 1.33.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from functools import partial

from kcm.api import scheme
from kcm.api.core_v1 import Node, Pod, PodCondition
from kcm.apimachinery.meta_v1 import KubeObject
from kcm.helpers.pods import condition_of, with_condition
from kcm.reconcile.plan import Bind, Delete, Event, Outcome, Patch, Write
from kcm.scheduler.nodeinfo import NodeInfo
from kcm.scheduler.podinfo import PodInfo
from kcm.store import DeleteOptions
from kcm.store.strategies.pod_binding import bound
from kcm.store.writes.guards import EntryUnchanged, Exists

UNSCHEDULABLE, SCHEDULER_ERROR = "Unschedulable", "SchedulerError"


def binding(info: PodInfo, node: NodeInfo, position: int, stamp: str, now: datetime) -> Bind:
    """The pod goes to the node, if the node is there and no pod came or went unseen."""
    guards = (
        Exists(scheme.resource_of(Node).name, node.name, node.uid),
        EntryUnchanged(f"node:{node.name}", position, stamp),
    )
    return Bind(bound(info.source, node.name, now), info.source, guards)


def not_scheduled(
    info: PodInfo, reason: str, message: str, nominated: str | None, now: datetime
) -> Patch | None:
    """The pod's condition says why; None when it says so already. `nominated` None: as it is."""
    change = partial(_not_scheduled, reason, message, nominated, now)
    return None if change(info.source) is info.source else Patch(info.source, change, status=True)


def _not_scheduled(
    reason: str, message: str, nominated: str | None, now: datetime, obj: KubeObject
) -> KubeObject:
    assert isinstance(obj, Pod)
    if obj.spec.node_name:
        return obj
    kept = obj.status.nominated_node_name or ""
    wanted = kept if nominated is None else nominated
    found = condition_of(obj.status, "PodScheduled")
    if found and (found.status, found.reason, found.message) == ("False", reason, message):
        if wanted == kept:
            return obj
        return obj.with_status(obj.status.replace(nominated_node_name=wanted or None))
    condition = PodCondition(type="PodScheduled", status="False", reason=reason, message=message)
    told = with_condition(obj.status, condition, now)
    return obj.with_status(told.replace(nominated_node_name=wanted or None))


def failure(info: PodInfo, message: str) -> Event:
    """What `kubectl describe` shows of an attempt that failed."""
    return Event(info.source, "Warning", "FailedScheduling", message)


def evictions(
    info: PodInfo, victims: Sequence[Pod], losers: Sequence[PodInfo], now: datetime
) -> list[Write]:
    """The victims are marked and deleted, with their own grace; kept places are given up."""
    scheduler = info.source.spec.scheduler_name
    condition = PodCondition(
        type="DisruptionTarget",
        status="True",
        reason="PreemptionByScheduler",
        message=f"{scheduler}: preempting to accommodate a higher priority pod",
    )
    writes: list[Write] = []
    for victim in victims:
        mark = partial(_marked, condition, now)
        writes.append(Patch(victim, mark, status=True))
        writes.append(Delete(victim, DeleteOptions(uid=victim.uid)))
    writes += [Patch(loser.source, _without_place, status=True) for loser in losers]
    return writes


def _marked(condition: PodCondition, now: datetime, obj: KubeObject) -> KubeObject:
    assert isinstance(obj, Pod)
    return obj.with_status(with_condition(obj.status, condition, now))


def _without_place(obj: KubeObject) -> KubeObject:
    assert isinstance(obj, Pod)
    if not obj.status.nominated_node_name:
        return obj
    return obj.with_status(obj.status.replace(nominated_node_name=None))


def preempted(info: PodInfo, victims: Sequence[Pod], node: NodeInfo) -> list[Event]:
    """What the victims' Events say."""
    text = f"Preempted by pod {info.uid} on node {node.name}"
    return [Event(victim, "Normal", "Preempted", text) for victim in victims]


def scheduled(outcome: Outcome) -> Sequence[tuple[Pod, Event]]:
    """The pods whose binding was written, and their Events."""
    found = []
    for write, obj in outcome.done:
        if isinstance(write, Bind) and isinstance(obj, Pod):
            text = f"Successfully assigned {obj.namespace}/{obj.name} to {obj.spec.node_name}"
            found.append((obj, Event(obj, "Normal", "Scheduled", text)))
    return found
