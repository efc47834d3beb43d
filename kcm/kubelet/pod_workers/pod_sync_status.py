"""What a pod worker remembers of its pod.

Source: podSyncStatus, UpdatePodOptions and KillPodOptions in pkg/kubelet/pod_workers.go,
Kubernetes 1.33.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum

from kcm.api.core_v1 import Pod, PodStatus
from kcm.kubelet.kuberuntime.view import RuntimePod
from kcm.kubelet.sync_context import SyncContext
from kcm.kubelet.types import SyncPodType, full_name


class WorkType(StrEnum):
    """The phase that a pod is in for its worker."""

    SYNC = "sync"
    TERMINATING = "terminating"
    TERMINATED = "terminated"


@dataclass(frozen=True)
class KillPodOptions:
    """How to end a pod. `completed` is called when it has ended, in some thread."""

    completed: Callable[[], None] | None = None
    evict: bool = False
    status: Callable[[PodStatus], PodStatus] | None = None  # changes what is reported of it
    grace_seconds: int | None = None


@dataclass(frozen=True)
class UpdatePodOptions:
    """An update of a pod. One that is known only from the runtime can only be killed."""

    update_type: SyncPodType
    pod: Pod | None = None
    mirror_pod: Pod | None = None
    running_pod: RuntimePod | None = None
    kill: KillPodOptions | None = None
    start_time: float = 0.0  # when its cause was seen, by the clock's `monotonic`
    on_complete: Callable[[Exception | None], None] | None = None

    @property
    def uid(self) -> str:
        if self.pod is not None:
            return self.pod.uid or ""
        return self.running_pod.uid if self.running_pod else ""

    @property
    def full_name(self) -> str:
        if self.pod is not None:
            return full_name(self.pod)
        running = self.running_pod
        return f"{running.name}_{running.namespace}" if running else ""


@dataclass
class PodSyncStatus:
    """Guarded by the workers' lock. Moments are set once and never taken back."""

    synced_at: datetime
    full_name: str
    working: bool = False
    pending: UpdatePodOptions | None = None  # the last that is not worked on yet
    active: UpdatePodOptions | None = None  # the last that was, with the newest pod
    context: SyncContext | None = None
    last_sync: float = 0.0  # by the clock's `monotonic`
    started_at: datetime | None = None
    terminating_at: datetime | None = None
    terminated_at: datetime | None = None
    grace: int | None = None  # seconds; only ever shorter
    deleted: bool = False
    evicted: bool = False
    finished: bool = False
    restart_requested: bool = False  # the same uid was added again while it ended
    observed_runtime: bool = False
    notify: list[Callable[[], None]] = field(default_factory=list)
    status_functions: list[Callable[[PodStatus], PodStatus]] = field(default_factory=list)

    @property
    def is_termination_requested(self) -> bool:
        return self.terminating_at is not None

    @property
    def is_terminated(self) -> bool:
        return self.terminated_at is not None

    @property
    def work_type(self) -> WorkType:
        if self.is_terminated:
            return WorkType.TERMINATED
        return WorkType.TERMINATING if self.is_termination_requested else WorkType.SYNC

    def merge(self, other: UpdatePodOptions) -> None:
        """Keep the newest of everything, for when the update has to be repeated."""
        before = self.active
        if before is None:
            self.active = other
            return
        self.active = replace(
            other,
            pod=other.pod or before.pod,
            mirror_pod=other.mirror_pod or before.mirror_pod,
            kill=other.kill or before.kill,
        )


@dataclass(frozen=True)
class WorkerState:
    """What clean-up learns of a worker."""

    state: WorkType
    orphan: bool = False  # no longer desired
    has_config: bool = False
    static: bool = False


def acknowledged(options: UpdatePodOptions) -> UpdatePodOptions:
    """Without the wish to kill, whose sender is told that it is fulfilled."""
    if options.kill is not None and options.kill.completed is not None:
        options.kill.completed()
    return replace(options, kill=None)


def effective_grace(
    status: PodSyncStatus, pod: Pod | None, kill: KillPodOptions
) -> tuple[int, bool]:
    """The grace period in seconds, at least 1, and whether it has become shorter."""
    before = status.grace
    grace = before
    wishes = [kill.grace_seconds]
    if pod is not None and pod.deleting:
        wishes.append(pod.metadata.deletion_grace_period_seconds)
    for wish in wishes:
        if wish is not None and (grace is None or wish < grace):
            grace = wish
    if grace is None:
        own = pod.spec.termination_grace_period_seconds if pod is not None else None
        grace = 30 if own is None else own
    grace = max(grace, 1)
    return grace, before is not None and before != grace
