"""Builds the pod conditions that the kubelet owns: pure functions.

Source: pkg/kubelet/status/generate.go, Kubernetes 1.33.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kcm.api.core_v1 import ContainerStatus, Pod, PodCondition, PodStatus
from kcm.helpers.pods import is_sidecar
from kcm.kubelet import resizing
from kcm.kubelet.kuberuntime.view import PodView
from kcm.kubelet.status.phase import FAILED, SUCCEEDED

READY_TO_START = "PodReadyToStartContainers"
INITIALIZED = "Initialized"
READY = "Ready"
CONTAINERS_READY = "ContainersReady"
SCHEDULED = "PodScheduled"
DISRUPTION_TARGET = "DisruptionTarget"
ALL_RESTARTING = "AllContainersRestarting"
OWNED = frozenset(
    {
        READY_TO_START, INITIALIZED, READY, CONTAINERS_READY, SCHEDULED,
        resizing.PENDING, resizing.IN_PROGRESS, ALL_RESTARTING,
    }
)  # fmt: skip


def _condition(
    pod: Pod, kind: str, holds: bool, reason: str | None = None, message: str | None = None
) -> PodCondition:
    """Returns a condition that is observed of the pod's generation."""
    return PodCondition(
        type=kind,
        status="True" if holds else "False",
        observed_generation=pod.metadata.generation,
        reason=reason,
        message=message,
    )


def build_conditions(
    pod: Pod, status: PodStatus, phase: str, others: Sequence[PodCondition], view: PodView
) -> list[PodCondition]:
    """Returns all conditions that the kubelet owns.

    The container statuses in `status` must be complete. `others` are the conditions of other
    owners.
    """
    mains, inits = status.container_statuses, status.init_container_statuses or []
    containers = build_containers_ready(pod, mains, inits, phase)
    return [
        _condition(
            pod, READY_TO_START, view.ready_sandbox is not None and bool(view.ready_sandbox.ip)
        ),
        build_initialized(pod, inits, mains, phase),
        build_ready(pod, others, containers),
        containers,
        _condition(pod, SCHEDULED, holds=True),
    ]


def build_containers_ready(
    pod: Pod,
    mains: Sequence[ContainerStatus] | None,
    inits: Sequence[ContainerStatus],
    phase: str,
) -> PodCondition:
    """Returns ContainersReady: whether all main containers and sidecars are ready.

    `mains` is None if their statuses are unknown.
    """
    if mains is None:
        return _condition(pod, CONTAINERS_READY, False, "UnknownContainerStatuses")
    by_name = {status.name: status for status in (*inits, *mains)}
    sidecars = [c for c in pod.spec.init_containers or () if is_sidecar(c)]
    names = [container.name for container in (*sidecars, *pod.spec.containers)]
    unknown = [name for name in names if name not in by_name]
    unready = [name for name in names if name in by_name and not by_name[name].ready]
    if phase == SUCCEEDED and not unknown:
        return _condition(pod, CONTAINERS_READY, False, "PodCompleted")
    if phase == FAILED:
        return _condition(pod, CONTAINERS_READY, False, "PodFailed")
    message = _describe_faults(unknown, unready, "unready")
    reason = "ContainersNotReady" if message else None
    return _condition(pod, CONTAINERS_READY, not message, reason, message)


def build_ready(
    pod: Pod, conditions: Sequence[PodCondition], containers: PodCondition
) -> PodCondition:
    """Returns Ready: whether the containers are ready and all readiness gates are True."""
    if containers.status != "True":
        return containers.replace(type=READY)
    by_type = {condition.type: condition for condition in conditions}
    faults = [
        fault
        for gate in pod.spec.readiness_gates or ()
        if (fault := _describe_gate_fault(gate.condition_type, by_type))
    ]
    if faults:
        return _condition(pod, READY, False, "ReadinessGatesNotReady", ", ".join(faults))
    return _condition(pod, READY, holds=True)


def update_readiness(pod: Pod, status: PodStatus) -> PodStatus:
    """Returns the status with Ready and ContainersReady computed from its container statuses."""
    inits, conditions = status.init_container_statuses or [], list(status.conditions or ())
    containers = build_containers_ready(pod, status.container_statuses, inits, status.phase or "")
    for new in (build_ready(pod, conditions, containers), containers):
        conditions = [new if condition.type == new.type else condition for condition in conditions]
        if new not in conditions:
            conditions.append(new)
    return status.replace(conditions=conditions)


def _describe_gate_fault(kind: str, by_type: Mapping[str, PodCondition]) -> str:
    gate = by_type.get(kind)
    if gate is None:
        return f'corresponding condition of pod readiness gate "{kind}" does not exist.'
    if gate.status != "True":
        return f'the status of pod readiness gate "{kind}" is not "True", but {gate.status}'
    return ""


def build_initialized(
    pod: Pod,
    inits: Sequence[ContainerStatus],
    mains: Sequence[ContainerStatus] | None,
    phase: str,
) -> PodCondition:
    """Returns Initialized: whether all init containers have succeeded and all sidecars started.

    `mains` is None if the statuses of main containers are unknown.
    """
    if mains is None and pod.spec.init_containers:
        return _condition(pod, INITIALIZED, False, "UnknownContainerStatuses")
    by_name = {status.name: status for status in inits}
    containers = pod.spec.init_containers or []
    unknown = [c.name for c in containers if c.name not in by_name]
    incomplete = [
        c.name
        for c in containers
        if c.name in by_name
        and not (by_name[c.name].started if is_sidecar(c) else by_name[c.name].ready)
    ]
    if phase == SUCCEEDED and not unknown:
        return _condition(pod, INITIALIZED, True, "PodCompleted")
    if any(_has_started(status) for status in mains or ()):
        return _condition(pod, INITIALIZED, holds=True)
    message = _describe_faults(unknown, incomplete, "incomplete")
    reason = "ContainersNotInitialized" if message else None
    return _condition(pod, INITIALIZED, not message, reason, message)


def _describe_faults(unknown: list[str], faulty: list[str], fault: str) -> str | None:
    """Returns which containers keep a condition from being True, None if there are none."""
    texts = []
    if unknown:
        texts.append(f"containers with unknown status: [{' '.join(unknown)}]")
    if faulty:
        texts.append(f"containers with {fault} status: [{' '.join(faulty)}]")
    return ", ".join(texts) or None


def _has_started(status: ContainerStatus) -> bool:
    state, last = status.state, status.last_state
    now_or_ended = state is not None and (state.running or state.terminated)
    return bool(now_or_ended or (last is not None and last.terminated))


def needs_readiness_reconciled(pod: Pod) -> bool:
    """Reports whether the pod has readiness gates, and its Ready condition differs from them."""
    if not pod.spec.readiness_gates:
        return False
    status = pod.status
    containers = build_containers_ready(
        pod,
        status.container_statuses,
        status.init_container_statuses or [],
        status.phase or "",
    )
    wanted = build_ready(pod, status.conditions or (), containers)
    reported = next((c for c in status.conditions or () if c.type == READY), None)
    return reported is not None and (reported.status, reported.message) != (
        wanted.status,
        wanted.message,
    )
