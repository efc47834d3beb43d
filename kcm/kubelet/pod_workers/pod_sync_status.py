"""The pod workers' state of each pod, and the updates that they take.

Source: podSyncStatus, UpdatePodOptions and KillPodOptions in pkg/kubelet/pod_workers.go, Kubernetes
1.33.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum

from kcm.api.core_v1 import Pod, PodStatus
from kcm.kubelet.kuberuntime.view import RuntimePod
from kcm.kubelet.sync_context import SyncContext
from kcm.kubelet.types import DEFAULT_GRACE, SyncPodType, full_name


class WorkType(StrEnum):
    """The phase of a pod in its worker."""

    SYNC = "sync"
    TERMINATING = "terminating"
    TERMINATED = "terminated"


@dataclass(frozen=True)
class KillPodOptions:
    """How to kill a pod."""

    on_completed: Callable[[], None] | None = None  # called in any thread after the pod's end
    evict: bool = False
    update_status: Callable[[PodStatus], PodStatus] | None = None  # applied before reporting
    grace_seconds: int | None = None


@dataclass(frozen=True)
class UpdatePodOptions:
    """An update of a pod. A pod that only the runtime knows (`running_pod`) can only be killed."""

    update_type: SyncPodType
    pod: Pod | None = None
    mirror_pod: Pod | None = None
    running_pod: RuntimePod | None = None
    kill: KillPodOptions | None = None
    start_time: float = 0.0  # when the cause was observed, by `Clock.monotonic`
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
    """The state of one pod in its worker. The lock of PodStates guards every field.

    Each of the times `..._at` is set once and never unset.
    """

    synced_at: datetime
    full_name: str
    working: bool = False
    pending: UpdatePodOptions | None = None  # the newest update that no worker has taken yet
    active: UpdatePodOptions | None = None  # the last update taken, with the newest pod
    context: SyncContext | None = None
    last_sync: float = 0.0  # by `Clock.monotonic`
    started_at: datetime | None = None
    terminating_at: datetime | None = None
    terminated_at: datetime | None = None
    grace: int | None = None  # seconds; it is never extended
    deleted: bool = False
    evicted: bool = False
    finished: bool = False
    restart_requested: bool = False  # the same uid was added again during termination
    observed_runtime: bool = False
    on_terminated: list[Callable[[], None]] = field(default_factory=list)
    status_updates: list[Callable[[PodStatus], PodStatus]] = field(default_factory=list)

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

    def merge_last_update(self, update: UpdatePodOptions) -> None:
        """Makes an update the active one. Fields that it leaves unset keep their values."""
        previous = self.active
        if previous is None:
            self.active = update
            return
        self.active = replace(
            update,
            pod=update.pod or previous.pod,
            mirror_pod=update.mirror_pod or previous.mirror_pod,
            kill=update.kill or previous.kill,
        )

    def notify_terminated(self) -> None:
        """Calls the functions that wait for the pod's end, once each."""
        waiting, self.on_terminated = self.on_terminated, []
        for notify in waiting:
            notify()


@dataclass(frozen=True)
class PodWorkerState:
    """The state of one pod's worker, for housekeeping."""

    state: WorkType
    orphan: bool = False  # no longer desired
    has_config: bool = False
    static: bool = False


def drop_kill(update: UpdatePodOptions) -> UpdatePodOptions:
    """Returns the update without its kill, after calling the kill's `on_completed`.

    It is used for pods that have terminated already, and for kills that do not terminate a pod.
    """
    if update.kill is not None and update.kill.on_completed is not None:
        update.kill.on_completed()
    return replace(update, kill=None)


def effective_grace(
    status: PodSyncStatus, pod: Pod | None, kill: KillPodOptions
) -> tuple[int, bool]:
    """Returns the grace period in seconds, at least 1, and whether it is shorter than before."""
    before = status.grace
    grace = before
    requested = [kill.grace_seconds]
    if pod is not None and pod.deleting:
        requested.append(pod.metadata.deletion_grace_period_seconds)
    for seconds in requested:
        if seconds is not None and (grace is None or seconds < grace):
            grace = seconds
    if grace is None:
        own = pod.spec.termination_grace_period_seconds if pod is not None else None
        grace = DEFAULT_GRACE if own is None else own
    grace = max(grace, 1)
    return grace, before is not None and before != grace
