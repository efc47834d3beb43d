"""The conditions that a kubelet reports of a pod.

Source: pkg/kubelet/status/generate.go, Kubernetes 1.33.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kcm.api.core_v1 import ContainerStatus, Pod, PodCondition
from kcm.simulation.runs import PodRun
from kcm.simulation.values import moment
from kcm.simulation.words import go_list

_OWNED = ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled")


@dataclass(frozen=True, slots=True)
class _Finding:
    type: str
    status: bool
    reason: str | None = None
    message: str | None = None


def of_pod(
    pod: Pod, run: PodRun, statuses: Mapping[str, ContainerStatus], phase: str, now: float
) -> list[PodCondition]:
    """All conditions of the pod; the time of a transition is kept while the status stays."""
    known = {c.type: c for c in pod.status.conditions or ()}
    others = [c for c in pod.status.conditions or () if c.type not in _OWNED]
    if run.rejected:
        return list(pod.status.conditions or ())
    ready = _containers_ready(run, statuses, phase)
    found = (
        _Finding("PodReadyToStartContainers", run.sandbox and not run.over),
        _initialized(run, statuses, phase),
        _pod_ready(pod, ready, known),
        ready,
        _Finding("PodScheduled", status=True),
    )
    return others + [_condition(finding, known.get(finding.type), now) for finding in found]


def _condition(found: _Finding, old: PodCondition | None, now: float) -> PodCondition:
    status = "True" if found.status else "False"
    if old is not None and old.status == status:
        if (old.reason, old.message) == (found.reason, found.message):
            return old
        since = old.last_transition_time
    else:
        since = moment(now)
    return PodCondition(
        type=found.type,
        status=status,
        last_transition_time=since or moment(now),
        reason=found.reason,
        message=found.message,
    )


def _containers_ready(run: PodRun, statuses: Mapping[str, ContainerStatus], phase: str) -> _Finding:
    kind = "ContainersReady"
    if phase == "Succeeded":
        return _Finding(kind, status=False, reason="PodCompleted")
    if phase == "Failed":
        return _Finding(kind, status=False, reason="PodFailed")
    unready = [c.name for c in run.of("sidecar", "main") if not statuses[c.name].ready]
    if unready:
        text = f"containers with unready status: {go_list(unready)}"
        return _Finding(kind, status=False, reason="ContainersNotReady", message=text)
    return _Finding(kind, status=True)


def _pod_ready(pod: Pod, containers: _Finding, known: Mapping[str, PodCondition]) -> _Finding:
    if not containers.status:
        return _Finding("Ready", False, containers.reason, containers.message)
    missing: Sequence[str] = [
        text
        for gate in pod.spec.readiness_gates or ()
        if (text := _gate_fault(gate.condition_type, known.get(gate.condition_type)))
    ]
    if missing:
        return _Finding("Ready", False, "ReadinessGatesNotReady", ", ".join(missing))
    return _Finding("Ready", status=True)


def _gate_fault(kind: str, condition: PodCondition | None) -> str:
    if condition is None:
        return f'corresponding condition of pod readiness gate "{kind}" does not exist.'
    if condition.status != "True":
        return f'the status of pod readiness gate "{kind}" is not "True", but {condition.status}'
    return ""


def _initialized(run: PodRun, statuses: Mapping[str, ContainerStatus], phase: str) -> _Finding:
    kind = "Initialized"
    if phase == "Succeeded":
        return _Finding(kind, status=True, reason="PodCompleted")
    if any(_has_started(statuses[c.name]) for c in run.of("main")):
        return _Finding(kind, status=True)
    incomplete = [
        c.name
        for c in run.of("init", "sidecar")
        if not (statuses[c.name].started if c.sort == "sidecar" else statuses[c.name].ready)
    ]
    if incomplete:
        ordered = [c.name for c in run.containers if c.name in incomplete]
        text = f"containers with incomplete status: {go_list(ordered)}"
        return _Finding(kind, status=False, reason="ContainersNotInitialized", message=text)
    return _Finding(kind, status=True)


def _has_started(status: ContainerStatus) -> bool:
    state, last = status.state, status.last_state
    now_or_ended = state is not None and (state.running or state.terminated)
    return bool(now_or_ended or (last is not None and last.terminated))
