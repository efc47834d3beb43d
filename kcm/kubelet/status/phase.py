"""Computes a pod's phase: pure functions.

Source: getPhase in pkg/kubelet/kubelet_pods.go, Kubernetes 1.33.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from kcm.api.core_v1 import Container, ContainerStateTerminated, ContainerStatus, PodSpec
from kcm.api.pods.restarts import restarts_after
from kcm.helpers.pods import is_sidecar

PENDING, RUNNING, SUCCEEDED, FAILED = "Pending", "Running", "Succeeded", "Failed"
RESTARTING_ALL = "RestartingAllContainers"  # the reason of containers that are to start again
TERMINAL = frozenset({SUCCEEDED, FAILED})

Statuses = Mapping[str, ContainerStatus]


def compute_phase(spec: PodSpec, statuses: Iterable[ContainerStatus], *, over: bool) -> str:
    """Returns the phase that follows from the container statuses.

    `over` says that no container will be started again.
    """
    by_name = {status.name: status for status in statuses}
    init, sidecars = _count_inits(spec, by_name), _count_sidecars(spec, by_name)
    mains = Counter(_count_as(by_name.get(container.name)) for container in spec.containers)
    inits = [c for c in spec.init_containers or () if not is_sidecar(c)]
    if any(_has_failed_for_good(spec, container, by_name) for container in inits):
        return FAILED
    started = mains["running"] + mains["stopped"] + mains["succeeded"] > 0
    if init["pending"] or (sidecars["pending"] and not started):
        return PENDING
    counts = mains + sidecars
    if counts["waiting"] or counts["unknown"]:
        return PENDING
    if counts["running"]:
        return RUNNING
    if not counts["stopped"] and not counts["succeeded"]:
        return PENDING
    if not over and any(_restarts(spec, container, by_name) for container in spec.containers):
        return RUNNING
    return SUCCEEDED if not counts["stopped"] else FAILED


def _find_end(status: ContainerStatus | None) -> ContainerStateTerminated | None:
    """Returns how a container that does not run has last ended, None if it never has."""
    if status is None or status.state is None or status.state.running:
        return None
    last = status.last_state.terminated if status.last_state else None
    return status.state.terminated or last


def _restarts(spec: PodSpec, container: Container, by_name: Statuses) -> bool:
    end = _find_end(by_name.get(container.name))
    return end is not None and _restarts_after(end, container, spec)


def _has_failed_for_good(spec: PodSpec, container: Container, by_name: Statuses) -> bool:
    end = _find_end(by_name.get(container.name))
    if end is None or not end.exit_code:
        return False
    return not _restarts_after(end, container, spec)


def _restarts_after(end: ContainerStateTerminated, container: Container, spec: PodSpec) -> bool:
    """Reports whether a container starts again, by its policy or together with all others."""
    return end.reason == RESTARTING_ALL or restarts_after(container, spec, end.exit_code)


def _count_as(status: ContainerStatus | None) -> str:
    """Returns the state that a main container counts as."""
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
    return "stopped"  # it waits to be started again, however the last attempt ended


def _count_inits(spec: PodSpec, by_name: Statuses) -> Counter[str]:
    """Counts the init containers that are not done (`pending`) and those that failed (`failed`)."""
    inits = [c for c in spec.init_containers or () if not is_sidecar(c)]
    return Counter(_count_init_as(by_name.get(container.name)) for container in inits)


def _count_sidecars(spec: PodSpec, by_name: Statuses) -> Counter[str]:
    """Counts the sidecars that run, wait or are unknown, and those not started (`pending`)."""
    sidecars = [c for c in spec.init_containers or () if is_sidecar(c)]
    counts: Counter[str] = Counter()
    for container in sidecars:
        counts.update(_count_sidecar_as(by_name.get(container.name)))
    return counts


def _count_sidecar_as(status: ContainerStatus | None) -> tuple[str, ...]:
    """Returns the states that a sidecar counts as.

    These are none once it has ended, because it is started again.
    """
    if status is None:
        return ("unknown",)
    state = status.state
    if state is not None and state.running:
        return ("running",) if status.started else ("running", "pending")
    if state is not None and state.terminated:
        return ()
    if state is not None and state.waiting:
        last = status.last_state.terminated if status.last_state else None
        return () if last else ("waiting", "pending")
    return ("unknown", "pending")


def _count_init_as(status: ContainerStatus | None) -> str:
    """Returns the state that an init container counts as: pending, failed or done."""
    if status is None or status.state is None or status.state.running:
        return "pending"
    ended = status.state.terminated
    if ended is None and status.last_state is not None:
        ended = status.last_state.terminated
        return "failed" if ended is not None and ended.exit_code else "pending"
    if ended is None:
        return "pending"
    return "failed" if ended.exit_code else "done"
