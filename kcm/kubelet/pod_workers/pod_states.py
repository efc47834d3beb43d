"""How far each pod has come, for all that must not get ahead of its worker.

Source: the questions of podWorkers in pkg/kubelet/pod_workers.go, Kubernetes 1.33.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable

import structlog

from kcm.api.core_v1 import Pod
from kcm.kubelet.pod_workers.pod_sync_status import PodSyncStatus, WorkerState
from kcm.kubelet.types import is_static_pod

log = structlog.get_logger("kcm.kubelet")


class PodStates:
    """The record of pod work. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._statuses: dict[str, PodSyncStatus] = {}
        self._static: dict[str, str] = {}  # full name -> the uid that may run under it
        self._waiting_static: dict[str, list[str]] = {}
        self._synced_once = False
        self._restarting: set[str] = set()

    def _ask(self, uid: str, ask: Callable[[PodSyncStatus], bool], unknown: bool) -> bool:
        with self._lock:
            status = self._statuses.get(uid)
            return unknown if status is None else ask(status)

    def is_known_terminated(self, uid: str) -> bool:
        """Whether its containers have ended, as far as workers know."""
        return self._ask(uid, lambda s: s.is_terminated, unknown=False)

    def could_have_running_containers(self, uid: str) -> bool:
        """Whether containers may run, to be on the safe side before the first clean-up."""
        return self._ask(uid, lambda s: not s.is_terminated, unknown=not self._synced_once)

    def should_pod_be_finished(self, uid: str) -> bool:
        """Whether all of it may be removed."""
        return self._ask(uid, lambda s: s.finished, unknown=self._synced_once)

    def is_termination_requested(self, uid: str) -> bool:
        return self._ask(uid, lambda s: s.is_termination_requested, unknown=False)

    def should_runtime_be_removed(self, uid: str) -> bool:
        """Whether sandboxes may be removed."""
        return self._ask(uid, lambda s: s.is_terminated, unknown=self._synced_once)

    def should_content_be_removed(self, uid: str) -> bool:
        """Whether all dead containers may be removed."""
        return self._ask(
            uid,
            lambda s: (s.evicted or s.deleted) and s.is_terminated,
            unknown=self._synced_once,
        )

    def is_mirror_terminating(self, name: str) -> bool:
        """Whether the static pod of that full name is ending."""
        with self._lock:
            uid = self._static.get(name)
            return bool(uid) and self.is_termination_requested(uid or "")

    def pod_of(self, uid: str) -> Pod | None:
        """The pod as its worker last saw it."""
        with self._lock:
            status = self._statuses.get(uid)
            return status.active.pod if status and status.active else None

    def take_restarting(self) -> set[str]:
        """The uids that were forgotten because the same pod was added again while it ended."""
        with self._lock:
            found, self._restarting = self._restarting, set()
            return found

    def has_synced(self) -> bool:
        """Whether the workers have been told of all pods once."""
        return self._synced_once

    def sync_known_pods(self, desired: Iterable[Pod]) -> dict[str, WorkerState]:
        """Forget pods that have ended and are gone; what is left, by uid."""
        known = {pod.uid or "" for pod in desired}
        with self._lock:
            self._synced_once = True
            found: dict[str, WorkerState] = {}
            for uid, status in list(self._statuses.items()):
                orphan = uid not in known
                if (orphan or status.restart_requested) and self._removed(uid, status, orphan):
                    continue
                pod = status.active.pod if status.active else None
                found[uid] = WorkerState(
                    status.work_type,
                    orphan,
                    pod is not None,
                    pod is not None and is_static_pod(pod),
                )
            return found

    def _removed(self, uid: str, status: PodSyncStatus, orphan: bool) -> bool:
        unstarted = orphan and status.started_at is None and not status.working
        if not status.finished and not unstarted:
            return False
        if status.restart_requested and not orphan:
            log.info("Pod has ended and is started anew", pod=status.full_name)
            self._restarting.add(uid)
        del self._statuses[uid]
        self._forget_waiting(status.full_name, uid)
        if self._static.get(status.full_name) == uid:
            del self._static[status.full_name]
        return True

    def _forget_waiting(self, name: str, uid: str) -> None:
        waiting = [other for other in self._waiting_static.pop(name, []) if other != uid]
        if waiting:
            self._waiting_static[name] = waiting
