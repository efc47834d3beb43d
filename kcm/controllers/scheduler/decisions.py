"""Turns the decisions of a pass into writes and Events.

Source: pkg/scheduler/schedule_one.go (handleSchedulingFailure, bindingCycle) and
pkg/scheduler/framework/preemption/preemption.go (prepareCandidate), Kubernetes 1.33.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from functools import partial

from kcm.api.core_v1 import Node, Pod, PodCondition
from kcm.controllers.scheduler.nodeinfo import NodeInfo, PodInfo
from kcm.helpers.pods import condition_of, with_condition
from kcm.sdk import (
    Bind,
    Delete,
    DeleteOptions,
    EntryUnchanged,
    Event,
    Exists,
    Outcome,
    Patch,
    Write,
)
from kcm.store.strategies.pod_binding import bind_to_node, choose_topology_labels

WAITS_FOR_CLAIMS = "PreBind"  # stands for a plugin where a pod waits for its claims' volumes
UNSCHEDULABLE, SCHEDULER_ERROR = "Unschedulable", "SchedulerError"


def bind_to(info: PodInfo, node: NodeInfo, position: int, stamp: str, now: datetime) -> Bind:
    """Returns the write that binds the pod to the node.

    It fails if the node is gone, or if the node's pods have changed after the snapshot's
    `position`, except by writes with the same `stamp`, which identifies the pass.
    """
    guards = (
        Exists(Node.resource.name, node.name, node.uid),
        EntryUnchanged(f"node:{node.name}", position, stamp),
    )
    placed = bind_to_node(info.source, node.name, now, choose_topology_labels(node.labels))
    if info.claims and placed.status.nominated_node_name:
        # The place was kept while the claims got their volumes.
        placed = placed.with_status(placed.status.replace(nominated_node_name=None))
    return Bind(placed, info.source, guards)


def mark_unscheduled(
    info: PodInfo, reason: str, message: str, nominated: str | None, now: datetime
) -> Patch | None:
    """Returns the write of the pod's condition PodScheduled=False; None if the pod has it already.

    `nominated` is the new nominated node, "" for none; None keeps the present one.
    """
    change = partial(_not_scheduled, reason, message, nominated, now)
    return None if change(info.source) is info.source else Patch(info.source, change, status=True)


def _not_scheduled(
    reason: str, message: str, nominated: str | None, now: datetime, obj: Pod
) -> Pod:
    if obj.spec.node_name:
        return obj
    kept = obj.status.nominated_node_name or ""
    wanted = kept if nominated is None else nominated
    present = condition_of(obj.status, "PodScheduled")
    if present and (present.status, present.reason, present.message) == ("False", reason, message):
        if wanted == kept:
            return obj
        return obj.with_status(obj.status.replace(nominated_node_name=wanted or None))
    condition = PodCondition(type="PodScheduled", status="False", reason=reason, message=message)
    marked = with_condition(obj, condition, now)
    return marked.with_status(marked.status.replace(nominated_node_name=wanted or None))


def nominate(info: PodInfo, node: str) -> Patch:
    """Returns the write that keeps a place on the node for the pod."""
    return Patch(info.source, partial(_with_nomination, node), status=True)


def _with_nomination(node: str, obj: Pod) -> Pod:
    if obj.spec.node_name or obj.status.nominated_node_name == node:
        return obj
    return obj.with_status(obj.status.replace(nominated_node_name=node))


def failure_event(info: PodInfo, message: str) -> Event:
    """Returns the Event of a scheduling attempt that failed."""
    return Event(info.source, "Warning", "FailedScheduling", message)


def evict_victims(
    info: PodInfo, victims: Sequence[Pod], losers: Sequence[PodInfo], now: datetime
) -> list[Write]:
    """Returns the writes that evict the victims and remove the nominations of the losers.

    Each victim gets the condition DisruptionTarget and is deleted with its own grace period.
    """
    scheduler = info.source.spec.scheduler_name
    condition = PodCondition(
        type="DisruptionTarget",
        status="True",
        reason="PreemptionByScheduler",
        message=f"{scheduler}: preempting to accommodate a higher priority pod",
    )
    writes: list[Write] = []
    for victim in victims:
        mark = partial(_mark_disrupted, condition, now)
        writes.append(Patch(victim, mark, status=True))
        writes.append(Delete(victim, DeleteOptions(uid=victim.uid)))
    writes += [Patch(loser.source, _without_nomination, status=True) for loser in losers]
    return writes


def _mark_disrupted(condition: PodCondition, now: datetime, obj: Pod) -> Pod:
    return with_condition(obj, condition, now)


def _without_nomination(obj: Pod) -> Pod:
    if not obj.status.nominated_node_name:
        return obj
    return obj.with_status(obj.status.replace(nominated_node_name=None))


def preemption_events(info: PodInfo, victims: Sequence[Pod], node: NodeInfo) -> list[Event]:
    """Returns an Event about each victim."""
    text = f"Preempted by pod {info.uid} on node {node.name}"
    return [Event(victim, "Normal", "Preempted", text) for victim in victims]


def scheduled_events(outcome: Outcome) -> Sequence[tuple[Pod, Event]]:
    """Returns the pods whose binding was written, each with its Event."""
    bound = []
    for write, obj in outcome.done:
        if isinstance(write, Bind) and isinstance(obj, Pod):
            text = f"Successfully assigned {obj.namespace}/{obj.name} to {obj.spec.node_name}"
            bound.append((obj, Event(obj, "Normal", "Scheduled", text)))
    return bound
