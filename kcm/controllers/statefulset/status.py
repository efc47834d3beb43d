"""Computes the status of a StatefulSet.

Source: updateStatus and updateStatefulSetStatus in
pkg/controller/statefulset/stateful_set_control.go, Kubernetes 1.33. The condition Stalled is kcm's
own: upstream does not report that an update waits for a pod that never becomes ready
(kubernetes/kubernetes issue 67250).
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from kcm.api.apps_v1 import StatefulSet, StatefulSetCondition, StatefulSetStatus
from kcm.api.core_v1 import Pod
from kcm.controllers.statefulset.identity import (
    is_available,
    is_running_and_ready,
    revision_of,
    wanted_replicas,
)
from kcm.controllers.statefulset.revisions import Revisions
from kcm.helpers.pods import condition_of

STALLED = "Stalled"
OLD_POD_NOT_READY = "OldPodNotReady"
# The reasons of waiting containers that are being started.
_ON_ITS_WAY = frozenset({"ContainerCreating", "PodInitializing"})


def count_replicas(
    stateful_set: StatefulSet, pods: Iterable[Pod], revisions: Revisions, now: datetime
) -> StatefulSetStatus:
    """Returns the status with the counts of the pods before the writes of this sync."""
    members = list(pods)
    ready = [pod for pod in members if is_running_and_ready(pod)]
    made = [revision_of(pod) for pod in members if not pod.deleting]
    update = revisions.update.revision.name
    current = made.count(revisions.current.name)
    return stateful_set.status.replace(
        observed_generation=stateful_set.metadata.generation,
        replicas=len(members),
        ready_replicas=len(ready) or None,
        available_replicas=sum(is_available(stateful_set, pod, now) for pod in ready),
        current_replicas=current or None,
        updated_replicas=made.count(update) or None,
        current_revision=revisions.current.name,
        update_revision=update,
        collision_count=revisions.update.collisions,
    )


def without_replaced(status: StatefulSetStatus, replaced: int) -> StatefulSetStatus:
    """Returns the status with `replaced` fewer current replicas, which were deleted for the
    update.
    """
    current = max(0, (status.current_replicas or 0) - replaced)
    return status.replace(current_replicas=current or None)


def complete_update(stateful_set: StatefulSet, status: StatefulSetStatus) -> StatefulSetStatus:
    """Returns the status, with the update revision as the current one if all pods have it."""
    size = wanted_replicas(stateful_set)
    counts = (status.updated_replicas or 0, status.ready_replicas or 0, status.replicas)
    if stateful_set.spec.update_strategy.type != "RollingUpdate" or counts != (size, size, size):
        return status
    return status.replace(
        current_replicas=status.updated_replicas, current_revision=status.update_revision
    )


def is_stuck(pod: Pod) -> bool:
    """Reports whether the pod shows signs that it will not become ready by itself."""
    scheduled = condition_of(pod.status, "PodScheduled")
    if scheduled is not None and scheduled.reason == "Unschedulable":
        return True
    statuses = [*(pod.status.init_container_statuses or ()), *(pod.status.container_statuses or ())]
    waiting = (s.state.waiting for s in statuses if s.state is not None)
    reasons = {state.reason for state in waiting if state is not None and state.reason}
    return bool(reasons - _ON_ITS_WAY)


def stall_condition(pod: Pod, update: str, now: datetime) -> StatefulSetCondition:
    """Returns the condition Stalled, whose message names the pod and says what to do."""
    return StatefulSetCondition(
        type=STALLED,
        status="True",
        reason=OLD_POD_NOT_READY,
        message=f"Pod {pod.name} of revision {revision_of(pod)} does not get ready, and its "
        f"replacement by revision {update} waits for that; delete the pod to go on",
        last_transition_time=now.replace(microsecond=0),
    )


def with_stalled(
    status: StatefulSetStatus, stalled: StatefulSetCondition | None
) -> StatefulSetStatus:
    """Returns the status with this condition Stalled, or without any if `stalled` is None.

    The condition's transition time is kept.
    """
    before = next((c for c in status.conditions or () if c.type == STALLED), None)
    others = [c for c in status.conditions or () if c.type != STALLED]
    if stalled is not None and before is not None:
        stalled = stalled.replace(last_transition_time=before.last_transition_time)
    conditions = [*others, stalled] if stalled is not None else others
    return status.replace(conditions=conditions or None)
