"""TaintEviction: deletes pods from nodes with NoExecute taints that they do not, or no longer,
tolerate.

A key is a node and stands for all its pods, so that they are deleted in one write. The key is
delayed in the queue until the toleration of the next pod runs out. The time from which each pod's
toleration counts is kept in the key's memory in Redis, so neither a restart nor another sync
changes it. A sync that finds that an eviction is no longer needed cancels it.

Source: pkg/controller/tainteviction/taint_eviction.go, Kubernetes 1.33. Departures: when the
tolerations in use change, the shortest counts from the same start (upstream keeps the time that it
first planned). Pods of a node that is gone are left to the pod garbage collector.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Any

from kcm.api.core_v1 import Node, Pod, PodCondition, Taint
from kcm.apimachinery.meta_v1 import KubeObject, ObjectMeta, shift_time
from kcm.helpers.pods import with_condition
from kcm.helpers.tolerations import min_toleration_seconds
from kcm.sdk import (
    BY_NODE,
    Change,
    Controller,
    Counter,
    Counts,
    Delete,
    Event,
    Histogram,
    Indexed,
    Outcome,
    Patch,
    Plan,
    View,
    Watch,
    sum_counts,
)
from kcm.store.indexes import noexecute_entry

REASON = "TaintManagerEviction"
_DELETED = "doomed"  # the end of the memory's entry of a pod whose deletion was planned

TARGET = PodCondition(
    type="DisruptionTarget",
    status="True",
    reason="DeletionByTaintManager",
    message="Taint manager: deleting due to NoExecute taint",
)


DELETIONS = Counter(
    "taint_eviction_controller_pod_deletions",
    "Total number of Pods deleted by TaintEvictionController since its start.",
)
LATENCY = Histogram(
    "taint_eviction_controller_pod_deletion_duration_seconds",
    "Latency, in seconds, between the time when a taint effect has been activated for the Pod "
    "and its deletion via TaintEvictionController.",
    (0.005, 0.025, 0.1, 0.5, 1, 2.5, 10, 30, 60, 120, 180, 240),
)


class TaintEvictionController(Controller):
    """Deletes pods from tainted nodes when their tolerations run out. A key is a node."""

    name = "taint-eviction-controller"
    short_name = "tainteviction"
    metrics = (DELETIONS, LATENCY)
    group = "nodes"
    # By the pod's key: its uid, when its toleration began, and whether its deletion was planned.
    remembers = True

    def watches(self) -> tuple[Watch[Any], ...]:
        return (Watch(Node, node_keys), Watch(Pod, pod_keys))

    def concurrent_syncs(self) -> int:
        return 8  # upstream's UpdateWorkerSize

    def reconcile(self, key: str, view: View) -> Plan:
        node = view.lister(Node).find(key)
        if node is None:
            return Plan(state={})
        evictions = _Evictions(node, view.memory, view.now)
        for pod in view.lister(Pod).by_index(BY_NODE, key):
            evictions.add(pod)
        return evictions.to_plan()


def no_execute_taints(node: KubeObject | None) -> Sequence[Taint]:
    """Returns the node's NoExecute taints."""
    taints = node.spec.taints or () if isinstance(node, Node) else ()
    return [taint for taint in taints if taint.effect == "NoExecute"]


# --- which keys


def node_keys(change: Change, view: View) -> Iterable[str]:
    """Yields the key of a node whose NoExecute taints changed."""
    if no_execute_taints(change.old) != no_execute_taints(change.new):
        yield change.object.name


def pod_keys(change: Change, view: View) -> Iterable[str]:
    """Yields the tainted node of a pod that was added, deleted or bound, or whose tolerations
    changed.
    """
    pod, old = change.object, change.old
    if not isinstance(pod, Pod) or not pod.spec.node_name:
        return
    if change.new is not None and isinstance(old, Pod) and _same(old, pod):
        return
    if no_execute_taints(view.lister(Node).find(pod.spec.node_name)):
        yield pod.spec.node_name


def _same(old: Pod, new: Pod) -> bool:
    before, after = old.spec, new.spec
    return before.node_name == after.node_name and before.tolerations == after.tolerations


# --- evictions


class _Evictions:
    """Plans the evictions from one node, based on those that earlier syncs planned."""

    def __init__(self, node: Node, remembered: Mapping[str, str], now: datetime) -> None:
        self._node = node
        self._taints = no_execute_taints(node)
        self._now = now
        self._remembered = dict(remembered)
        self._kept: dict[str, str] = {}
        self._waits: list[float] = []
        self._due: list[Pod] = []
        self._late: dict[str, float] = {}  # seconds since their tolerations ran out, by uid
        self._plan = Plan()

    def add(self, pod: Pod) -> None:
        """Plans the eviction of a pod of the node, keeps the plan of an earlier sync, or cancels
        it.
        """
        uid, since, _ = _parse_entry(self._remembered.pop(pod.key, ""))
        begun = datetime.fromisoformat(since) if uid == pod.uid else None
        if pod.deleting:
            return
        seconds = min_toleration_seconds(self._taints, pod.spec.tolerations)
        if seconds == math.inf:
            if begun is not None:
                self._cancel(pod)
            return
        since_when = begun or self._now
        left = (shift_time(since_when, seconds) - self._now).total_seconds()
        self._kept[pod.key] = f"{pod.uid} {since_when.isoformat()}"
        if left <= 0:
            # Kept in case the write fails. When the pod is gone, no cancelling is recorded.
            self._kept[pod.key] += f" {_DELETED}"
            self._due.append(pod)
            self._late[pod.uid] = -left
        else:
            self._waits.append(left)

    def to_plan(self) -> Plan:
        for key, entry in self._remembered.items():  # pods that are gone, whoever deleted them
            uid, _, deleted = _parse_entry(entry)
            namespace, _, name = key.partition("/")
            if not deleted:
                self._cancel(Pod(metadata=ObjectMeta(namespace=namespace, name=name, uid=uid)))
        self._plan.state = self._kept
        self._plan.requeue_after = min(self._waits, default=None)
        return self._plan_evictions()

    def _cancel(self, pod: Pod) -> None:
        self._plan.record(pod, REASON, f"Cancelling deletion of Pod {pod.key}")

    def _plan_evictions(self) -> Plan:
        # The guard keeps pods if the node's taints have changed since.
        entry = noexecute_entry(self._taints)
        guards = (Indexed(Node.resource.name, self._node.name, entry),)
        mark = partial(_mark_disrupted, self._now)
        self._plan.then(*(Patch(pod, mark, guards, status=True) for pod in self._due))
        self._plan.then(*(Delete(pod, guards=guards) for pod in self._due))
        self._plan.events_after = _deletions
        self._plan.counts_after = self._count_evictions
        return self._plan

    def _count_evictions(self, outcome: Outcome) -> Counts:
        gone = [write.old for write, _ in outcome.done if isinstance(write, Delete)]
        late = (LATENCY.observe(self._late[pod.uid]) for pod in gone)
        return sum_counts([*late, *(DELETIONS.count() for _ in gone)])


def _parse_entry(entry: str) -> tuple[str, str, bool]:
    uid, since, deleted = (*entry.split(" "), "", "", "")[:3]
    return uid, since, deleted == _DELETED


def _mark_disrupted(now: datetime, obj: Pod) -> Pod:
    return with_condition(obj, TARGET, now)


def _deletions(outcome: Outcome) -> Sequence[Event]:
    return [
        Event(write.old, "Normal", REASON, f"Marking for deletion Pod {write.old.key}")
        for write, _ in outcome.done
        if isinstance(write, Delete)
    ]
