"""The interface through which the kubelet uses its probes.

Source: Manager in pkg/kubelet/prober/prober_manager.go, Kubernetes 1.33.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from kcm.api.core_v1 import Pod, PodStatus


class PodProber(Protocol):
    """Probes the containers of pods. Thread-safe; no method waits for a probe."""

    def add_pod(self, pod: Pod) -> None:
        """Starts probing the pod's containers, except those that are probed already."""
        ...

    def stop_liveness_and_startup(self, pod: Pod) -> None:
        """Stops the pod's liveness and startup probes, because the pod is terminating."""
        ...

    def remove_pod(self, pod: Pod) -> None:
        """Stops all probes of the pod."""
        ...

    def cleanup(self, running: Iterable[str]) -> None:
        """Stops the probes of all pods except those with the given uids."""
        ...

    def update_pod_status(self, pod: Pod, status: PodStatus) -> PodStatus:
        """Returns the pod status with `started` and `ready` set for every container."""
        ...

    def liveness(self, container_id: str) -> bool | None:
        """Returns whether the container passes its liveness probe, or None if that is unknown.

        The id is the runtime's own, without the runtime's name.
        """
        ...

    def startup(self, container_id: str) -> bool | None:
        """Returns whether the container passes its startup probe, or None if that is unknown."""
        ...
