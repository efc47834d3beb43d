"""Computes the results of probes of simulated containers. Times are seconds since 1970."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from kcm.api.core_v1 import ContainerStatus, Pod, PodStatus, Probe
from kcm.helpers.pods import sidecar_place
from kcm.kubelet.kuberuntime.actions import ContainerHealth
from kcm.kubelet.status.generate import ApplyProbes
from kcm.simulation.runtime.containers import Attempt


def lives(attempt: Attempt, now: float) -> bool:
    """Reports whether a running container passes its liveness probe."""
    return now < attempt.sick


def has_started(attempt: Attempt, now: float) -> bool:
    """Reports whether the container passes its startup and readiness probes."""
    return attempt.ready <= now


def health(attempts: Mapping[str, Attempt], now: float) -> ContainerHealth:
    """Returns the results of all probes at that time, by container ids."""

    def liveness(container_id: str) -> bool | None:
        attempt = attempts.get(container_id)
        return None if attempt is None else lives(attempt, now)

    def startup(container_id: str) -> bool | None:
        attempt = attempts.get(container_id)
        # Startup probes never fail: they are repeated until they succeed.
        return True if attempt is not None and has_started(attempt, now) else None

    return ContainerHealth(liveness, startup)


def build_apply_probes(newest: Callable[[str], Attempt | None], now: float) -> ApplyProbes:
    """Returns a function that sets `started` and `ready` of each container in a pod status.

    They follow from its newest attempt, with or without probes in the spec.
    """

    def set_running(pod: Pod, status: ContainerStatus) -> ContainerStatus:
        attempt = newest(status.name)
        if attempt is None or not attempt.runs(now):
            return status.replace(started=False, ready=False)
        ready = attempt.is_ready(now)
        started = has_started(attempt, now) or not _has_startup_probe(pod, status.name)
        return status.replace(started=started, ready=ready)

    def set_init(status: ContainerStatus) -> ContainerStatus:
        ended = status.state.terminated if status.state else None
        return status.replace(started=False, ready=ended is not None and ended.exit_code == 0)

    def apply(pod: Pod, status: PodStatus) -> PodStatus:
        mains = [set_running(pod, container) for container in status.container_statuses or ()]
        inits = [
            set_init(container)
            if sidecar_place(pod, container.name) is None
            else set_running(pod, container)
            for container in status.init_container_statuses or ()
        ]
        return status.replace(
            container_statuses=mains or None, init_container_statuses=inits or None
        )

    return apply


def _has_startup_probe(pod: Pod, name: str) -> bool:
    containers = [*pod.spec.containers, *(pod.spec.init_containers or ())]
    return any(
        container.name == name and container.startup_probe is not None for container in containers
    )


def build_failure_message(kind: str, probe: Probe | None) -> str:
    """Returns the message of the Event about a failed probe."""
    return f"{kind} probe failed: {describe_failure(probe)}"


def describe_failure(probe: Probe | None) -> str:
    """Returns the output of a failed probe, which depends on its kind."""
    if probe is not None and probe.http_get is not None:
        return "HTTP probe failed with statuscode: 503"
    if probe is not None and probe.tcp_socket is not None:
        return f"dial tcp :{probe.tcp_socket.port}: connect: connection refused"
    return "(simulated)"
