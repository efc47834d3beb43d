"""What the kubelet asks of its probes.

Source: Manager in pkg/kubelet/prober/prober_manager.go, Kubernetes 1.33.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from kcm.api.core_v1 import Pod, PodStatus


class PodProber(Protocol):
    """Probes the containers of pods. Thread-safe; no method waits for a probe."""

    def add_pod(self, pod: Pod) -> None:
        """Begins to probe the pod's containers; does nothing for those that are probed already."""
        ...

    def stop_liveness_and_startup(self, pod: Pod) -> None:
        """Stops the probes that restart containers, because the pod is ending."""
        ...

    def remove_pod(self, pod: Pod) -> None:
        """Stops all probes of the pod."""
        ...

    def cleanup(self, running: Iterable[str]) -> None:
        """Stops the probes of all pods but those with the given uids."""
        ...

    def update_pod_status(self, pod: Pod, status: PodStatus) -> PodStatus:
        """Returns the status with `started` and `ready` set for every container."""
        ...

    def liveness(self, container_id: str) -> bool | None:
        """Returns whether the container passes its liveness probe; None if that is unknown.

        The id is the runtime's own, without the runtime's name.
        """
        ...

    def startup(self, container_id: str) -> bool | None:
        """Returns whether the container passes its startup probe; None if that is unknown."""
        ...
