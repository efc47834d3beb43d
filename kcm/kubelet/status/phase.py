"""A pod's phase: pure.

Source: getPhase in pkg/kubelet/kubelet_pods.go, Kubernetes 1.33.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from kcm.api.core_v1 import ContainerStatus, PodSpec
from kcm.kubelet.types import is_sidecar

PENDING, RUNNING, SUCCEEDED, FAILED = "Pending", "Running", "Succeeded", "Failed"
TERMINAL = frozenset({SUCCEEDED, FAILED})

Statuses = Mapping[str, ContainerStatus]


def phase_of(spec: PodSpec, statuses: Iterable[ContainerStatus], *, over: bool) -> str:
    """The phase that containers in these states make; `over`: nothing will be started again."""
    known = {status.name: status for status in statuses}
    init = _init_counts(spec, known)
    counts = Counter(_kind(known.get(container.name)) for container in spec.containers)
    if init["failed"] and spec.restart_policy == "Never":
        return FAILED
    started = counts["running"] + counts["stopped"] + counts["succeeded"] > 0
    if (init["pending"] or init["failed"]) and not started:
        return PENDING
    if counts["waiting"] or counts["unknown"]:
        return PENDING
    if counts["running"]:
        return RUNNING
    return _without_running(spec, counts, over)


def _without_running(spec: PodSpec, counts: Counter[str], over: bool) -> str:
    if not counts["stopped"] and not counts["succeeded"]:
        return PENDING
    done = SUCCEEDED if not counts["stopped"] else FAILED
    if over:
        return done
    match spec.restart_policy or "Always":
        case "Always":
            return RUNNING
        case "OnFailure":
            return done if done == SUCCEEDED else RUNNING
    return done


def _kind(status: ContainerStatus | None) -> str:
    """Of an ordinary container: what it counts as."""
    state = status.state if status else None
    if status is None or state is None:
        return "unknown"
    if state.running:
        return "running"
    if state.terminated:
        return "stopped" if state.terminated.exit_code else "succeeded"
    last = status.last_state.terminated if status.last_state else None
    if last is None:
        return "waiting"
    return "stopped"  # on its way to the next start, however the last run ended


def _init_counts(spec: PodSpec, known: Statuses) -> Counter[str]:
    """How many init containers are not done (`pending`), and have failed (`failed`)."""
    counts: Counter[str] = Counter()
    for container in spec.init_containers or ():
        status = known.get(container.name)
        kind = _sidecar_kind(status) if is_sidecar(container) else _init_kind(status)
        counts[kind] += 1
    return counts


def _sidecar_kind(status: ContainerStatus | None) -> str:
    if status is None or status.state is None:
        return "pending"
    if status.state.running:
        return "done" if status.started else "pending"
    if status.state.terminated or (status.last_state and status.last_state.terminated):
        return "done"
    return "pending"


def _init_kind(status: ContainerStatus | None) -> str:
    if status is None or status.state is None or status.state.running:
        return "pending"
    ended = status.state.terminated
    if ended is None and status.last_state is not None:
        ended = status.last_state.terminated
        return "failed" if ended is not None and ended.exit_code else "pending"
    if ended is None:
        return "pending"
    return "failed" if ended.exit_code else "done"
