"""Views of pods in the runtime: RuntimePod is what lists show, PodView has all details.

Source: Pod, PodStatus and Status in pkg/kubelet/container/runtime.go, Kubernetes 1.33.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from kcm.kubelet.cri import (
    Resources,
    RuntimeContainer,
    RuntimeContainerState,
    Sandbox,
    SandboxState,
)


@dataclass(frozen=True)
class RuntimePod:
    """A pod as the runtime's lists show it."""

    uid: str
    name: str
    namespace: str
    containers: Sequence[RuntimeContainer] = ()
    sandboxes: Sequence[Sandbox] = ()


@dataclass(frozen=True)
class ContainerView:
    """One attempt of a container of a pod, running or not."""

    id: str
    name: str
    state: RuntimeContainerState
    created_at: datetime
    started_at: datetime | None = None
    finished_at: datetime | None = None
    exit_code: int = 0
    reason: str = ""
    message: str = ""
    image: str = ""
    hash: str = ""
    restart_count: int = 0
    log_path: str = ""
    image_id: str = ""  # "" in a runtime without images
    resources: Resources | None = None  # what it may use, None if the runtime does not say


@dataclass(frozen=True)
class PodView:
    """A pod with the statuses of its containers.

    Containers and sandboxes are sorted, the newest first.
    """

    uid: str
    name: str = ""
    namespace: str = ""
    ips: tuple[str, ...] = ()
    containers: Sequence[ContainerView] = ()
    sandboxes: Sequence[Sandbox] = ()

    def find(self, name: str) -> ContainerView | None:
        """Returns the newest attempt of the container with that name, or None."""
        return next((container for container in self.containers if container.name == name), None)

    def list_running(self) -> list[ContainerView]:
        """Returns the running containers."""
        return [
            container
            for container in self.containers
            if container.state is RuntimeContainerState.RUNNING
        ]

    @property
    def ready_sandbox(self) -> Sandbox | None:
        """The newest sandbox if it is ready, else None."""
        newest = self.sandboxes[0] if self.sandboxes else None
        return newest if newest is not None and newest.state is SandboxState.READY else None
