"""What the runtime says of pods: the list each second, and one pod in full.

Source: Pod, PodStatus and Status in pkg/kubelet/container/runtime.go, Kubernetes 1.33.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from kcm.kubelet.cri import Container, ContainerState, Sandbox, SandboxState


@dataclass(frozen=True)
class RuntimePod:
    """A pod as the lists show it."""

    uid: str
    name: str
    namespace: str
    containers: Sequence[Container] = ()
    sandboxes: Sequence[Sandbox] = ()


@dataclass(frozen=True)
class ContainerView:
    """A container, present or former, of a pod."""

    id: str
    name: str
    state: ContainerState
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


@dataclass(frozen=True)
class PodView:
    """A pod in full; containers and sandboxes the newest first."""

    uid: str
    name: str = ""
    namespace: str = ""
    ips: tuple[str, ...] = ()
    containers: Sequence[ContainerView] = ()
    sandboxes: Sequence[Sandbox] = ()

    def find(self, name: str) -> ContainerView | None:
        """The newest container of that name."""
        return next((found for found in self.containers if found.name == name), None)

    def running(self) -> list[ContainerView]:
        return [found for found in self.containers if found.state is ContainerState.RUNNING]

    @property
    def ready_sandbox(self) -> Sandbox | None:
        """The sandbox in which containers run."""
        newest = self.sandboxes[0] if self.sandboxes else None
        return newest if newest is not None and newest.state is SandboxState.READY else None
