"""Where a prober plugs in: what the kubelet tells it, and what it tells the kubelet.

Results go into the channels `liveness`, `readiness` and `startup` of the sync loop.
Source: Manager in pkg/kubelet/prober/prober_manager.go, Kubernetes 1.33.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

from kcm.api.core_v1 import ContainerStatus, Pod, PodStatus
from kcm.helpers.pods import is_sidecar


@dataclass(frozen=True)
class Update:
    """A probe's result changed."""

    uid: str
    container_id: str  # as statuses have it, with the runtime's name in front
    success: bool


class Prober(Protocol):
    """Thread-safe. Nothing of it waits for a probe."""

    def add_pod(self, pod: Pod) -> None:
        """Start probing; a pod that is known already changes nothing."""
        ...

    def stop_liveness_and_startup(self, pod: Pod) -> None:
        """The pod ends: its containers must not be restarted by probes."""
        ...

    def remove_pod(self, pod: Pod) -> None: ...

    def cleanup(self, running: Iterable[str]) -> None:
        """Stop probing all pods but these (uids)."""
        ...

    def update_pod_status(self, pod: Pod, status: PodStatus) -> PodStatus:
        """Set `started` and `ready` of every container."""
        ...

    def liveness(self, container_id: str) -> bool | None:
        """The last result by the runtime's id; None while there is none."""
        ...

    def startup(self, container_id: str) -> bool | None: ...


class NoProber:
    """What runs is started and ready."""

    def add_pod(self, pod: Pod) -> None:
        """Nothing."""

    def stop_liveness_and_startup(self, pod: Pod) -> None:
        """Nothing."""

    def remove_pod(self, pod: Pod) -> None:
        """Nothing."""

    def cleanup(self, running: Iterable[str]) -> None:
        """Nothing."""

    def update_pod_status(self, pod: Pod, status: PodStatus) -> PodStatus:
        """Without results: running is enough."""
        return without_probes(pod, status)

    def liveness(self, container_id: str) -> bool | None:
        return None

    def startup(self, container_id: str) -> bool | None:
        return None


def without_probes(pod: Pod, status: PodStatus) -> PodStatus:
    """Started and ready by the containers' states alone."""
    sidecars = {c.name for c in pod.spec.init_containers or () if is_sidecar(c)}
    return status.replace(
        container_statuses=[_running(one) for one in status.container_statuses or ()] or None,
        init_container_statuses=[
            _running(one) if one.name in sidecars else _done(one)
            for one in status.init_container_statuses or ()
        ]
        or None,
    )


def _running(status: ContainerStatus) -> ContainerStatus:
    runs = status.state is not None and status.state.running is not None
    return status.replace(started=runs, ready=runs)


def _done(status: ContainerStatus) -> ContainerStatus:
    """An init container is ready once it has ended well."""
    ended = status.state.terminated if status.state else None
    return status.replace(started=False, ready=ended is not None and ended.exit_code == 0)
