"""What the simulated container runtime knows of a pod: plain values, replaced as time goes on."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum
from typing import Literal

from kcm.simulation.values import FOREVER

Sort = Literal["init", "sidecar", "main"]


class Phase(Enum):
    """Where one container is."""

    WAITING = "waiting"  # its turn has not come
    CREATING = "creating"  # pulled and created, until `until`
    PULL_FAILED = "pull failed"  # ErrImagePull, until `until`
    PULL_BACKOFF = "pull back-off"  # ImagePullBackOff, until `until`
    RUNNING = "running"  # until `until`, when its outcome comes
    EXITED = "exited"  # whether it starts again is decided at `until`
    BACKOFF = "back-off"  # CrashLoopBackOff, until `until`


@dataclass(frozen=True, slots=True)
class Ended:
    """How a run of a container ended. Times are seconds since 1970."""

    exit_code: int
    reason: str
    started: float
    finished: float
    message: str = ""
    container_id: str = ""


@dataclass(frozen=True, slots=True)
class ContainerRun:
    """One container."""

    name: str
    sort: Sort
    phase: Phase = Phase.WAITING
    until: float = FOREVER  # when the phase ends by itself
    started: float = 0.0
    ready_at: float = FOREVER
    ended: Ended | None = None  # the present end (EXITED), or the run before
    restarts: int = 0
    delay: float = 0.0  # seconds of back-off that the next end brings
    pulls: int = 0  # failed in a row
    killed: bool = False  # SIGTERM was sent
    probe_at: float = FOREVER  # next failing probe worth an Event

    @property
    def gone(self) -> bool:
        """Whether it has ended and will not start again."""
        return self.phase is Phase.EXITED and self.until == FOREVER

    def ready(self, now: float) -> bool:
        """Whether it runs and its readiness probe, if any, succeeds."""
        return self.phase is Phase.RUNNING and now >= self.ready_at


@dataclass(frozen=True, slots=True)
class PodRun:
    """One pod on its node."""

    containers: tuple[ContainerRun, ...]
    started: float  # when the kubelet saw it first (status.startTime)
    sandbox: bool = False
    ips: tuple[str, ...] = ()
    failure: tuple[str, str] | None = None  # reason and message, when the pod as such failed
    rejected: bool = False  # the node did not take it: no containers are reported

    def of(self, *sorts: Sort) -> list[ContainerRun]:
        """The containers of some sorts, in order."""
        return [c for c in self.containers if c.sort in sorts]

    def put(self, changed: ContainerRun) -> PodRun:
        """With one container as it is now."""
        containers = tuple(changed if c.name == changed.name else c for c in self.containers)
        return replace(self, containers=containers)

    @property
    def over(self) -> bool:
        """Whether nothing runs or will run."""
        if self.rejected:
            return True
        failed = any(c.gone and c.ended and c.ended.exit_code for c in self.of("init"))
        return all(c.gone or (failed and c.phase is Phase.WAITING) for c in self.containers)


@dataclass(frozen=True, slots=True)
class Note:
    """An Event to be: of the pod, or of one of its containers."""

    type: Literal["Normal", "Warning"]
    reason: str
    message: str
    field_path: str = ""
