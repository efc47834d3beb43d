"""The columns READY, STATUS and RESTARTS of pods.

Source: printPod in pkg/printers/internalversion/printers.go, Kubernetes 1.33.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from kcm.api.core_v1 import ContainerStateTerminated, ContainerStatus, Pod
from kcm.kinds.printing.durations import human_duration


def ready(pod: Pod) -> str:
    """Returns the number of ready containers and of all, sidecars included: `1/2`."""
    sidecars = _sidecars(pod)
    statuses = pod.status.container_statuses or ()
    count = sum(s.ready and bool(s.state and s.state.running) for s in statuses)
    count += sum(s.ready for s in _init_statuses(pod) if s.name in sidecars and _is_started(s))
    return f"{count}/{len(pod.spec.containers) + len(sidecars)}"


def reason(pod: Pod) -> str:
    """Returns the pod's state in one word: its phase, or why it has not got further."""
    if pod.metadata.deletion_timestamp is not None:
        if pod.status.reason == "NodeLost":
            return "Unknown"
        if (pod.status.phase or "") not in {"Succeeded", "Failed"}:
            return "Terminating"
    word = pod.status.reason or pod.status.phase or "Unknown"
    if _condition(pod, "PodScheduled", "False", "SchedulingGated"):
        word = "SchedulingGated"
    return _init_reason(pod) or _container_reason(pod, word)


def restarts(pod: Pod, now: datetime) -> str:
    """Returns the number of restarts, and how long ago the last was: `3 (5m ago)`."""
    sidecars = _sidecars(pod)
    init = _init_statuses(pod)
    mains = list(pod.status.container_statuses or ())
    started = [*(s for s in init if s.name in sidecars), *mains]
    counted = init if _init_reason(pod) else started
    total = sum(status.restart_count for status in counted)
    ends = [end for status in counted if (end := _last_end(status)) is not None]
    if total and ends:
        return f"{total} ({human_duration(now - max(ends))} ago)"
    return str(total)


def readiness_gates(pod: Pod) -> str:
    """Returns the number of readiness gates that are True and of all, `0/1`, or `<none>`."""
    gates = pod.spec.readiness_gates or []
    if not gates:
        return "<none>"
    true = sum(_condition(pod, gate.condition_type, "True") for gate in gates)
    return f"{true}/{len(gates)}"


def _condition(pod: Pod, kind: str, status: str, why: str | None = None) -> bool:
    return any(
        c.type == kind and c.status == status and (why is None or c.reason == why)
        for c in pod.status.conditions or ()
    )


def _sidecars(pod: Pod) -> set[str]:
    init = pod.spec.init_containers or ()
    return {c.name for c in init if getattr(c, "restart_policy", None) == "Always"}


def _init_statuses(pod: Pod) -> Sequence[ContainerStatus]:
    return pod.status.init_container_statuses or ()


def _is_started(status: ContainerStatus) -> bool:
    return bool(status.started)


def _init_reason(pod: Pod) -> str:
    """Returns the state of the first unfinished init container, "" if all have finished."""
    sidecars = _sidecars(pod)
    total = len(pod.spec.init_containers or ())
    for index, status in enumerate(_init_statuses(pod)):
        state = status.state
        ended = state.terminated if state else None
        if ended is not None and ended.exit_code == 0:
            continue
        if status.name in sidecars and _is_started(status):
            continue
        if ended is not None:
            return f"Init:{_end_word(ended)}"
        waiting = state.waiting.reason if state and state.waiting else None
        if waiting and waiting != "PodInitializing":
            return f"Init:{waiting}"
        return f"Init:{index}/{total}"
    return ""


def _container_reason(pod: Pod, word: str) -> str:
    running = False
    for status in reversed(pod.status.container_statuses or []):
        state = status.state
        if state and state.waiting and state.waiting.reason:
            word = state.waiting.reason
        elif state and state.terminated:
            word = _end_word(state.terminated)
        elif status.ready and state and state.running:
            running = True
    if word == "Completed" and running:
        return "Running" if _condition(pod, "Ready", "True") else "NotReady"
    return word


def _end_word(ended: ContainerStateTerminated) -> str:
    if ended.reason:
        return ended.reason
    return f"Signal:{ended.signal}" if ended.signal else f"ExitCode:{ended.exit_code}"


def _last_end(status: ContainerStatus) -> datetime | None:
    last = status.last_state
    return last.terminated.finished_at if last and last.terminated else None
