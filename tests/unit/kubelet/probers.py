"""A prober for pods without probes."""

from __future__ import annotations

from collections.abc import Iterable

from kcm.api.core_v1 import ContainerStatus, Pod, PodStatus
from kcm.helpers.pods import is_sidecar


class NoProbes:
    """Implements prober.interface.PodProber: containers that run are started and ready."""

    def add_pod(self, pod: Pod) -> None:
        """Does nothing."""

    def stop_liveness_and_startup(self, pod: Pod) -> None:
        """Does nothing."""

    def remove_pod(self, pod: Pod) -> None:
        """Does nothing."""

    def cleanup(self, running: Iterable[str]) -> None:
        """Does nothing."""

    def update_pod_status(self, pod: Pod, status: PodStatus) -> PodStatus:
        return without_probes(pod, status)

    def liveness(self, container_id: str) -> bool | None:
        return None

    def startup(self, container_id: str) -> bool | None:
        return None


def without_probes(pod: Pod, status: PodStatus) -> PodStatus:
    """Returns the status with `started` and `ready` set by the containers' states alone."""
    sidecars = {c.name for c in pod.spec.init_containers or () if is_sidecar(c)}
    return status.replace(
        container_statuses=[_mark_running(one) for one in status.container_statuses or ()] or None,
        init_container_statuses=[
            _mark_running(one) if one.name in sidecars else _mark_done(one)
            for one in status.init_container_statuses or ()
        ]
        or None,
    )


def _mark_running(status: ContainerStatus) -> ContainerStatus:
    runs = status.state is not None and status.state.running is not None
    return status.replace(started=runs, ready=runs)


def _mark_done(status: ContainerStatus) -> ContainerStatus:
    """Returns the status of an init container, which is ready once it has exited with 0."""
    ended = status.state.terminated if status.state else None
    return status.replace(started=False, ready=ended is not None and ended.exit_code == 0)
