"""The phases of all pods in their workers, for components that depend on them.

Source: the queries of podWorkers in pkg/kubelet/pod_workers.go, Kubernetes 1.33.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable

import structlog

from kcm.api.core_v1 import Pod
from kcm.kubelet.pod_workers.pod_sync_status import PodSyncStatus, PodWorkerState
from kcm.kubelet.types import is_static_pod

log = structlog.get_logger("kcm.kubelet")


class PodStates:
    """The state of the pod workers. Thread-safe.

    The public attributes belong to PodWorkers, which holds `lock` while it uses them. All others
    call the methods.
    """

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.statuses: dict[str, PodSyncStatus] = {}  # by uid
        self.started_static: dict[str, str] = {}  # the uid that has started, by full name
        self.waiting_static: dict[str, list[str]] = {}  # waiting uids by full name, oldest first
        self._synced_once = False
        self._restarting: set[str] = set()

    def _ask(self, uid: str, question: Callable[[PodSyncStatus], bool], unknown: bool) -> bool:
        """Returns what `question` returns for the pod's status, or `unknown` for an unknown pod."""
        with self.lock:
            status = self.statuses.get(uid)
            return unknown if status is None else question(status)

    def is_known_terminated(self, uid: str) -> bool:
        """Reports whether the pod's worker has seen that all of its containers have ended."""
        return self._ask(uid, lambda status: status.is_terminated, unknown=False)

    def could_have_running_containers(self, uid: str) -> bool:
        """Reports whether containers of the pod may run.

        Before the first housekeeping, this is so for any unknown pod, since an earlier kubelet may
        have left it running.
        """
        return self._ask(
            uid, lambda status: not status.is_terminated, unknown=not self._synced_once
        )

    def is_termination_requested(self, uid: str) -> bool:
        """Reports whether the pod is terminating or terminated."""
        return self._ask(uid, lambda status: status.is_termination_requested, unknown=False)

    def should_runtime_be_removed(self, uid: str) -> bool:
        """Reports whether the pod's sandboxes can be removed.

        They can if the pod has terminated, or is unknown after the first housekeeping.
        """
        return self._ask(uid, lambda status: status.is_terminated, unknown=self._synced_once)

    def should_content_be_removed(self, uid: str) -> bool:
        """Reports whether all dead containers of the pod can be removed.

        They can if the pod was evicted or deleted and has terminated, or is unknown after the first
        housekeeping.
        """
        return self._ask(
            uid,
            lambda status: (status.evicted or status.deleted) and status.is_terminated,
            unknown=self._synced_once,
        )

    def is_static_pod_terminating(self, name: str) -> bool:
        """Reports whether the static pod with that full name is terminating or terminated."""
        with self.lock:
            uid = self.started_static.get(name)
            return uid is not None and self.is_termination_requested(uid)

    def pod_of(self, uid: str) -> Pod | None:
        """Returns the pod of the last update that its worker took, or None."""
        with self.lock:
            status = self.statuses.get(uid)
            return status.active.pod if status and status.active else None

    def take_restarting(self) -> set[str]:
        """Returns the uids that were forgotten so that they start again, and clears that list."""
        with self.lock:
            restarting, self._restarting = self._restarting, set()
            return restarting

    def sync_known_pods(self, desired: Iterable[Pod]) -> dict[str, PodWorkerState]:
        """Forgets pods that have ended and are no longer desired; returns the others by uid.

        A pod that was added again under the same uid while it was terminating is forgotten as well,
        so that it can start again.
        """
        desired_uids = {pod.uid or "" for pod in desired}
        with self.lock:
            self._synced_once = True
            workers: dict[str, PodWorkerState] = {}
            for uid, status in list(self.statuses.items()):
                orphan = uid not in desired_uids
                if (orphan or status.restart_requested) and _is_removable(status, orphan):
                    self._remove(uid, status, orphan)
                    continue
                pod = status.active.pod if status.active else None
                workers[uid] = PodWorkerState(
                    status.work_type,
                    orphan=orphan,
                    has_config=pod is not None,
                    static=pod is not None and is_static_pod(pod),
                )
            return workers

    def _remove(self, uid: str, status: PodSyncStatus, orphan: bool) -> None:
        if status.restart_requested and not orphan:
            log.info("Pod has ended and is started again", pod=status.full_name)
            self._restarting.add(uid)
        del self.statuses[uid]
        self.stop_waiting(status.full_name, uid)
        self.release_static_name(status.full_name, uid)

    def stop_waiting(self, name: str, uid: str) -> None:
        """Removes a static pod from the queue for its full name. The caller holds the lock."""
        waiting = [other for other in self.waiting_static.pop(name, []) if other != uid]
        if waiting:
            self.waiting_static[name] = waiting

    def release_static_name(self, name: str, uid: str) -> None:
        """Lets another static pod run under the full name. The caller holds the lock."""
        if self.started_static.get(name) == uid:
            del self.started_static[name]


def _is_removable(status: PodSyncStatus, orphan: bool) -> bool:
    unstarted = orphan and status.started_at is None and not status.working
    return status.finished or unstarted
