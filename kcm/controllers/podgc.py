"""PodGC: force-deletes pods that no kubelet and no other controller will delete.

These are terminated pods beyond a threshold, pods on nodes that are gone or out of service, and
pods that were deleted before they had a node.

Source: pkg/controller/podgc/gc_controller.go, Kubernetes 1.33.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial

from pydantic import Field

from kcm.api.core_v1 import Node, Pod, PodCondition
from kcm.helpers.pods import is_terminal, with_condition
from kcm.helpers.volumes.attachments import OUT_OF_SERVICE
from kcm.sdk import (
    Absent,
    Controller,
    Counter,
    Counts,
    Delete,
    DeleteOptions,
    Guard,
    Options,
    Outcome,
    PassPlan,
    Patch,
    Tick,
    View,
    sum_counts,
)

CHECK_PERIOD = 20.0  # seconds between passes
QUARANTINE = timedelta(seconds=40)  # how long a node must be missing before its pods are deleted

NODE_GONE = PodCondition(
    type="DisruptionTarget",
    status="True",
    reason="DeletionByPodGC",
    message="PodGC: node no longer exists",
)


DELETED = Counter(
    "pod_gc_collector_force_delete_pods",
    "Number of pods that were forcefully deleted",
    ("namespace", "reason"),
)
FAILED = Counter(
    "pod_gc_collector_force_delete_pod_errors",
    "Number of errors encountered when forcefully deleting pods",
    ("namespace", "reason"),
)


class PodGCOptions(Options):
    """The options of the pod garbage collector."""

    terminated_pod_gc_threshold: int = Field(
        default=12500,
        description="Number of terminated pods that can exist before the terminated pod garbage "
        "collector starts deleting terminated pods. If <= 0, the terminated pod garbage collector "
        "is disabled",
    )


class PodGCController(Controller):
    """Deletes pods in one pass over all of them every 20 seconds."""

    name = "pod-garbage-collector-controller"
    short_name = "podgc"
    metrics = (DELETED, FAILED)
    options_type = PodGCOptions
    options: PodGCOptions
    reads = (Pod, Node)

    def ticks(self) -> tuple[Tick, ...]:
        return (Tick("podgc", CHECK_PERIOD, self.collect),)

    def collect(self, view: View, state: Mapping[str, str]) -> PassPlan:
        """Returns the plan of one pass. `state` has the time since when each missing node is
        missing.
        """
        pods = view.lister(Pod).list()
        nodes = {node.name: node for node in view.lister(Node).list()}
        missing = _find_missing_nodes(pods, nodes, state, view.now)
        gone = {name for name, since in missing.items() if view.now - since >= QUARANTINE}
        chosen = _Chosen(view.now)
        chosen.add(
            "terminated", _list_beyond_threshold(pods, self.options.terminated_pod_gc_threshold)
        )
        chosen.add("out-of-service", _on_out_of_service_nodes(pods, nodes))
        chosen.add_orphans(pod for pod in pods if pod.spec.node_name in gone)
        unbound = (pod for pod in pods if pod.deleting and not pod.spec.node_name)
        chosen.add("unscheduled", unbound)
        # Pods that are left on a node that is gone wait for another quarantine.
        kept = {name: since.isoformat() for name, since in missing.items() if name not in gone}
        plan = PassPlan(state=kept, counts_after=chosen.count_deletions, waits=tuple(kept))
        return plan.then(*chosen.marks).then(*chosen.deletes)


class _Chosen:
    """The writes for the pods that a pass has chosen to delete, each pod once."""

    def __init__(self, now: datetime) -> None:
        self.marks: list[Patch] = []
        self.deletes: list[Delete] = []
        self._now = now
        self._reasons: dict[str, str] = {}  # keyed by uid

    def add(self, reason: str, pods: Iterable[Pod]) -> None:
        for pod in pods:
            self._add(reason, pod)

    def add_orphans(self, pods: Iterable[Pod]) -> None:
        nodes = Node.resource
        for pod in pods:
            self._add("orphaned", pod, NODE_GONE, (Absent(nodes.name, pod.spec.node_name or ""),))

    def _add(
        self,
        reason: str,
        pod: Pod,
        why: PodCondition | None = None,
        guards: tuple[Guard, ...] = (),
    ) -> None:
        if pod.uid in self._reasons:
            return
        self._reasons[pod.uid] = reason
        if not is_terminal(pod):
            # No kubelet is left to report the phase, and controllers that count failed pods, such
            # as that of Jobs, have to see it before the pod is deleted.
            self.marks.append(
                Patch(pod, partial(_mark_failed, why, self._now), guards, status=True)
            )
        options = DeleteOptions(grace_period_seconds=0, uid=pod.uid)
        self.deletes.append(Delete(pod, options, guards))

    def count_deletions(self, outcome: Outcome) -> Counts:
        """Returns the counts of the pods that were deleted, and of those whose deletion failed."""
        done = (write.old for write, _ in outcome.done if isinstance(write, Delete))
        failed = (f.write.old for f in outcome.failures if isinstance(f.write, Delete))
        return sum_counts(
            metric.count(pod.namespace or "", self._reasons[pod.uid])
            for metric, pods in ((DELETED, done), (FAILED, failed))
            for pod in pods
        )


def _mark_failed(why: PodCondition | None, now: datetime, obj: Pod) -> Pod:
    if is_terminal(obj):
        return obj
    status = obj.status.replace(phase="Failed", observed_generation=obj.metadata.generation)
    failed = obj.with_status(status)
    return failed if why is None else with_condition(failed, why, now)


def _list_beyond_threshold(pods: Iterable[Pod], threshold: int) -> Sequence[Pod]:
    """Returns the terminated pods beyond the threshold: evicted ones first, then the oldest."""
    if threshold <= 0:
        return ()
    running = ("Pending", "Running", "Unknown")
    terminated = [pod for pod in pods if pod.status.phase not in running]
    excess = len(terminated) - threshold
    return sorted(terminated, key=_eviction_and_age)[:excess] if excess > 0 else ()


def _eviction_and_age(pod: Pod) -> tuple[bool, float, str]:
    evicted = pod.status.phase == "Failed" and pod.status.reason == "Evicted"
    created = pod.metadata.creation_timestamp
    return not evicted, created.timestamp() if created else 0.0, pod.name


def _on_out_of_service_nodes(pods: Iterable[Pod], nodes: Mapping[str, Node]) -> list[Pod]:
    """Returns deleted pods whose node is not ready and has the out-of-service taint."""
    dead = {name for name, node in nodes.items() if _is_out_of_service(node)}
    return sorted(
        (pod for pod in pods if pod.deleting and pod.spec.node_name in dead), key=_eviction_and_age
    )


def _is_out_of_service(node: Node) -> bool:
    tainted = any(taint.key == OUT_OF_SERVICE for taint in node.spec.taints or ())
    conditions = node.status.conditions or ()
    return tainted and not any(c.type == "Ready" and c.status == "True" for c in conditions)


def _find_missing_nodes(
    pods: Iterable[Pod], nodes: Mapping[str, Node], state: Mapping[str, str], now: datetime
) -> dict[str, datetime]:
    """Returns the missing nodes that pods name, each with the time of the first pass without it."""
    named = {pod.spec.node_name for pod in pods}
    missing = {name for name in named if name and name not in nodes}
    return {name: datetime.fromisoformat(state[name]) if name in state else now for name in missing}
