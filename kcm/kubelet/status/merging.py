"""Merges the kubelet's status of a pod with that in the API: pure functions.

Source: mergePodStatus, normalizeStatus, checkContainerStateTransition and updateLastTransitionTime
in pkg/kubelet/status/status_manager.go, Kubernetes 1.33.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from kcm.api.core_v1 import (
    ContainerState,
    ContainerStatus,
    Pod,
    PodCondition,
    PodSpec,
    PodStatus,
)
from kcm.api.pods.restarts import may_restart_all, restarts_after
from kcm.helpers.pods import is_sidecar, list_containers
from kcm.kubelet.status.conditions import (
    CONTAINERS_READY,
    DISRUPTION_TARGET,
    OWNED,
    READY,
)
from kcm.kubelet.status.phase import SUCCEEDED, TERMINAL

MAX_MESSAGE_BYTES = 12 * 1024  # bytes of termination messages in one pod


def set_transition_times(status: PodStatus, old: PodStatus, now: datetime) -> PodStatus:
    """Returns the status with the time at which each of the kubelet's conditions last changed."""
    before = {condition.type: condition for condition in old.conditions or ()}
    return status.replace(
        conditions=[
            _set_transition_time(condition, before.get(condition.type), now)
            if condition.type in OWNED or condition.type == DISRUPTION_TARGET
            else condition
            for condition in status.conditions or ()
        ]
    )


def _set_transition_time(
    condition: PodCondition, before: PodCondition | None, now: datetime
) -> PodCondition:
    if before is None or before.status != condition.status:
        return condition.replace(last_transition_time=now)
    if (before.reason, before.message) == (condition.reason, condition.message):
        return before
    return condition.replace(last_transition_time=before.last_transition_time or now)


def normalize_status(pod: Pod, status: PodStatus) -> PodStatus:
    """Returns the status with times in whole seconds, as the API stores them.

    Termination messages are cut so that those of one pod have at most MAX_MESSAGE_BYTES together.
    """
    containers = len(list_containers(pod.spec))
    most = MAX_MESSAGE_BYTES // max(containers, 1)
    return status.replace(
        start_time=_truncate_to_second(status.start_time),
        conditions=[
            c.replace(last_transition_time=_truncate_to_second(c.last_transition_time))
            for c in status.conditions or ()
        ]
        or None,
        container_statuses=_normalize_containers(status.container_statuses, most),
        init_container_statuses=_normalize_containers(status.init_container_statuses, most),
        ephemeral_container_statuses=_normalize_containers(
            status.ephemeral_container_statuses, most
        ),
    )


def _truncate_to_second(moment: datetime | None) -> datetime | None:
    return moment.replace(microsecond=0) if moment else None


def _normalize_containers(
    statuses: Sequence[ContainerStatus] | None, most: int
) -> list[ContainerStatus] | None:
    return [
        status.replace(
            state=_normalize_state(status.state, most),
            last_state=_normalize_state(status.last_state, most),
        )
        for status in statuses or ()
    ] or None


def _normalize_state(state: ContainerState | None, most: int) -> ContainerState | None:
    if state is None:
        return None
    if state.running is not None:
        running = state.running.replace(started_at=_truncate_to_second(state.running.started_at))
        return ContainerState(running=running)
    if state.terminated is not None:
        ended = state.terminated
        words = ended.message.encode()[:most].decode("utf-8", "ignore") if ended.message else None
        return ContainerState(
            terminated=ended.replace(
                started_at=_truncate_to_second(ended.started_at),
                finished_at=_truncate_to_second(ended.finished_at),
                message=words,
            )
        )
    return state


def restarts_ended_container(spec: PodSpec, old: PodStatus, new: PodStatus) -> bool:
    """Reports whether a container runs again that had ended and must not be restarted.

    Sidecars may always be restarted, and all containers of a pod with a rule for that.
    """
    if spec.restart_policy in (None, "Always") or may_restart_all(spec):
        return False
    ordinary = [one for one in spec.init_containers or () if not is_sidecar(one)]
    containers = {container.name: container for container in (*ordinary, *spec.containers)}
    after = {
        status.name: status
        for status in (*(new.container_statuses or ()), *(new.init_container_statuses or ()))
    }
    for status in (*(old.container_statuses or ()), *(old.init_container_statuses or ())):
        ended = status.state.terminated if status.state else None
        container = containers.get(status.name)
        if ended is None or container is None or restarts_after(container, spec, ended.exit_code):
            continue
        now = after.get(status.name)
        if now is not None and not (now.state and now.state.terminated):
            return True
    return False


def merge_status(
    api: PodStatus, own: PodStatus, *, could_have_running_containers: bool
) -> PodStatus:
    """Returns the kubelet's status with the conditions and fields of other owners in `api`.

    The phase does not become final while containers may still run.
    """
    ends = api.phase not in TERMINAL and own.phase in TERMINAL
    conditions = [c for c in api.conditions or () if c.type not in OWNED]
    for condition in own.conditions or ():
        if condition.type in OWNED:
            conditions.append(condition)
        elif condition.type == DISRUPTION_TARGET and ends and not could_have_running_containers:
            conditions = [c for c in conditions if c.type != DISRUPTION_TARGET] + [condition]
    result = own.replace(
        conditions=conditions,
        nominated_node_name=api.nominated_node_name,
        observed_generation=own.observed_generation or api.observed_generation,
    )
    if ends and could_have_running_containers:
        result = result.replace(phase=api.phase, reason=api.reason, message=api.message)
    return _mark_unready(result) if result.phase in TERMINAL else result


def _mark_unready(status: PodStatus) -> PodStatus:
    """Returns the status of a pod that has ended, with its readiness conditions False."""
    reason = "PodCompleted" if status.phase == SUCCEEDED else "PodFailed"
    return status.replace(
        conditions=[
            c.replace(status="False", reason=reason, message=None)
            if c.type in (READY, CONTAINERS_READY) and c.status == "True"
            else c
            for c in status.conditions or ()
        ]
    )
