"""The status manager: keeps the newest status of each pod and writes it to the API.

Guarantees: it accepts statuses at once, also while the store is unavailable; the last one of each
pod is written once the store is available. A status is written only to the pod with the same uid,
and merged with what others wrote to it. A pod is deleted from the API only after its containers
have ended. Does not guarantee that every status in between is written.

Source: pkg/kubelet/status/status_manager.go, Kubernetes 1.33. Departure: all statuses that are due
are written in one batch; upstream writes pod by pod.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime

import structlog

from kcm import errors
from kcm.api.core_v1 import ContainerStatus, Pod, PodStatus
from kcm.clock import Clock
from kcm.kubelet.pods.pod_manager import PodManager
from kcm.kubelet.status.conditions import update_readiness
from kcm.kubelet.status.generate import conclude_status
from kcm.kubelet.status.merging import (
    merge_status,
    normalize_status,
    restarts_ended_container,
    set_transition_times,
)
from kcm.kubelet.status.phase import TERMINAL
from kcm.kubelet.types import is_mirror_pod, is_static_pod, strip_runtime_name
from kcm.store import DeleteOptions, WriteItem, WriteStatus
from kcm.store.objects import ObjectStore
from kcm.store.options import Subresource

log = structlog.get_logger("kcm.kubelet")

PODS = Pod.resource
SYNC_PERIOD = 10.0  # seconds between comparisons of all pods with the API
RETRY_INTERVAL = 1.0  # seconds, after a write that failed


@dataclass(frozen=True)
class VersionedStatus:
    """A pod status and its version, which rises with each status of the pod."""

    status: PodStatus
    version: int
    key: str  # of the pod in the API
    finished: bool = False  # nothing of the pod is left on the node


class StatusManager:
    """Keeps the pod statuses, and writes them in the thread of `run`. Thread-safe."""

    def __init__(
        self,
        store: ObjectStore,
        pods: PodManager,
        clock: Clock,
        *,
        could_have_running_containers: Callable[[str], bool],
    ) -> None:
        """`could_have_running_containers` is that of PodStates; it takes the uid of a pod."""
        self._store = store
        self._pods = pods
        self._clock = clock
        self._could_have_running_containers = could_have_running_containers
        self._lock = threading.RLock()
        self._written_changed = threading.Condition(self._lock)
        self._statuses: dict[str, VersionedStatus] = {}  # by uid, not by that of a mirror
        self._written: dict[str, int] = {}  # versions by the uid in the API
        self._wake = threading.Event()

    # --- setting statuses

    def get(self, uid: str) -> PodStatus | None:
        """Returns the newest status of the pod, or None if none was set."""
        with self._lock:
            versioned = self._statuses.get(self._pods.translate(uid))
            return versioned.status if versioned else None

    def last(self, pod: Pod) -> PodStatus:
        """Returns the newest status of the pod, or that of the API if none was set."""
        return self.get(pod.uid or "") or pod.status

    def set(self, pod: Pod, status: PodStatus) -> None:
        """Sets the pod's status.

        Drops a status in which a container runs again that had ended and must not be restarted.
        """
        with self._lock:
            # A deleted pod's status is always written: it may be the last before the deletion.
            self._update(pod, status, force=pod.deleting, finished=False)

    def set_container_ready(self, uid: str, container_id: str, ready: bool) -> None:
        """Sets whether a container is ready, after a probe's result. The id is the runtime's."""
        self._set_container(uid, container_id, ready=ready)

    def set_container_started(self, uid: str, container_id: str, started: bool) -> None:
        """Sets whether a container has started, after a probe's result. The id is the runtime's."""
        self._set_container(uid, container_id, started=started)

    def _set_container(self, uid: str, container_id: str, **changes: bool) -> None:
        pod = self._pods.by_uid(uid)
        with self._lock:
            versioned = self._statuses.get(uid)
            if pod is None or versioned is None:
                return

            def change(statuses: list[ContainerStatus] | None) -> list[ContainerStatus] | None:
                return [
                    status.replace(**changes)
                    if strip_runtime_name(status.container_id or "") == container_id
                    else status
                    for status in statuses or ()
                ] or None

            status = versioned.status.replace(
                container_statuses=change(versioned.status.container_statuses),
                init_container_statuses=change(versioned.status.init_container_statuses),
            )
            if "ready" in changes:
                status = update_readiness(pod, status)
            self._update(pod, status, force=False, finished=False)

    def terminate(self, pod: Pod) -> None:
        """Sets the pod's final status, because nothing of the pod is left on the node."""
        with self._lock:
            versioned = self._statuses.get(pod.uid or "")
            status = conclude_status(pod, versioned.status if versioned else pod.status)
            self._update(pod, status, force=True, finished=True)

    def forget(self, uid: str) -> None:
        """Forgets the pod's status."""
        with self._lock:
            self._statuses.pop(uid, None)

    def remove_orphans(self, uids: Iterable[str]) -> None:
        """Forgets the statuses of all pods except those with the given uids."""
        kept = set(uids)
        with self._lock:
            for uid in [uid for uid in self._statuses if uid not in kept]:
                del self._statuses[uid]

    def _update(self, pod: Pod, status: PodStatus, *, force: bool, finished: bool) -> None:
        uid = pod.uid or ""
        cached = self._statuses.get(uid)
        mirror = self._pods.mirror_of(pod)
        old = cached.status if cached else (mirror or pod).status
        if restarts_ended_container(pod.spec, old, status):
            log.error("a container that had ended would run again, status dropped", pod=pod.key)
            return
        now = self._clock.now()
        status = set_transition_times(status, old, now)
        status = normalize_status(pod, status.replace(start_time=_start_time(old, status, now)))
        finished = finished or (cached is not None and cached.finished and not is_static_pod(pod))
        if cached and cached.status == status and cached.finished == finished and not force:
            return
        version = cached.version + 1 if cached else 1
        self._statuses[uid] = VersionedStatus(status, version, pod.key, finished)
        self._wake.set()

    # --- writing statuses to the API

    def run(self, stop: threading.Event) -> None:
        """Writes new statuses at once, and compares all with the API every SYNC_PERIOD seconds."""
        next_comparison = 0.0
        while not stop.is_set():
            self._clock.wait(self._wake, SYNC_PERIOD)
            self._wake.clear()
            compare = self._clock.monotonic() >= next_comparison
            if compare:
                next_comparison = self._clock.monotonic() + SYNC_PERIOD
            if not self._try_sync(compare) and not stop.is_set():
                self._clock.wait(stop, RETRY_INTERVAL)
                self._wake.set()

    def wake(self) -> None:
        """Makes `run` check for statuses to write at once."""
        self._wake.set()

    def wait_until_written(self, timeout: float) -> bool:
        """Waits until the API has the newest status of each pod.

        Returns False after `timeout` seconds.
        """
        with self._lock:
            return self._written_changed.wait_for(lambda: not self._due(compare=False), timeout)

    def _try_sync(self, compare: bool) -> bool:
        try:
            return self.sync_batch(compare=compare)
        except errors.Temporary as error:
            log.info("statuses wait for the store", error=str(error))
        except errors.KcmError as error:
            log.warning("statuses were not written", error=str(error))
        return False

    def sync_batch(self, *, compare: bool = False) -> bool:
        """Writes the new statuses in one batch; with `compare`, also those that differ in the API.

        Returns False if some have to be tried again. Raises KcmError.
        """
        due = self._due(compare=compare)
        if not due:
            return True
        stored = self._store.get_all([(PODS, versioned.key) for versioned in due.values()])
        return self._write(
            [
                (uid, versioned, pod)
                for (uid, versioned), pod in zip(due.items(), stored, strict=True)
                if isinstance(pod, Pod) and self._belongs_or_forget(uid, versioned, pod)
            ]
        )

    def _due(self, *, compare: bool) -> dict[str, VersionedStatus]:
        with self._lock:
            if compare:
                self._forget_versions()
            due: dict[str, VersionedStatus] = {}
            for uid, versioned in self._statuses.items():
                api_uid = self._pods.api_uid(uid)
                if api_uid is None:
                    continue  # a static pod without a mirror
                if self._written.get(api_uid, 0) < versioned.version or (
                    compare and self._needs_write(uid, versioned)
                ):
                    due[uid] = versioned
            return due

    def _forget_versions(self) -> None:
        kept = {self._pods.api_uid(uid) for uid in self._statuses}
        self._written = {uid: version for uid, version in self._written.items() if uid in kept}

    def _needs_write(self, uid: str, versioned: VersionedStatus) -> bool:
        """Reports whether the pod in the API has another status, or can be deleted."""
        pod = self._pods.by_uid(uid)
        if pod is None:
            return False
        if is_static_pod(pod):
            pod = self._pods.mirror_of(pod)
            if pod is None:
                return False
        if _can_be_deleted(pod, versioned):
            return True
        return normalize_status(pod, pod.status) != self._merge(uid, pod, versioned)

    def _belongs_or_forget(self, uid: str, versioned: VersionedStatus, pod: Pod) -> bool:
        """Reports whether the pod still is the one that the status is of.

        If it was deleted and created again, forgets the status.
        """
        if self._pods.translate(pod.uid or "") == uid:
            return True
        with self._lock:
            if self._statuses.get(uid) == versioned:
                del self._statuses[uid]
                self._written_changed.notify_all()
        return False

    def _merge(self, uid: str, pod: Pod, versioned: VersionedStatus) -> PodStatus:
        running = self._could_have_running_containers(uid)
        merged = merge_status(pod.status, versioned.status, could_have_running_containers=running)
        return normalize_status(pod, merged)

    def _write(self, due: list[tuple[str, VersionedStatus, Pod]]) -> bool:
        items: list[tuple[str, VersionedStatus, Pod, WriteItem[Pod] | None]] = []
        for uid, versioned, pod in due:
            new = pod.with_status(self._merge(uid, pod, versioned))
            try:
                item = self._store.build_update(new, pod, subresource=Subresource.STATUS)
            except errors.ApiError as error:
                log.warning("a status was rejected", pod=pod.key, error=str(error))
                self._set_written(pod, versioned)
                continue
            items.append((uid, versioned, new, item))
        return self._write_batch(items)

    def _write_batch(
        self, items: list[tuple[str, VersionedStatus, Pod, WriteItem[Pod] | None]]
    ) -> bool:
        """Writes the items in one batch, then deletes the pods that have ended."""
        results = iter(self._store.write([item for *_, item in items if item is not None]))
        complete, ended = True, []
        for uid, versioned, pod, item in items:
            stored = pod
            if item is not None:
                result = next(results)
                if not result.ok:
                    log.debug("a status was not written", pod=pod.key, why=result.status)
                    complete = complete and result.status is WriteStatus.NOT_FOUND
                    continue
                stored = result.get_stored()
            self._set_written(stored, versioned)
            if _can_be_deleted(stored, versioned):
                ended.append((uid, stored))
        return self._delete(ended) and complete

    def _set_written(self, pod: Pod, versioned: VersionedStatus) -> None:
        with self._lock:
            self._written[pod.uid or ""] = versioned.version
            self._written_changed.notify_all()

    def _delete(self, ended: list[tuple[str, Pod]]) -> bool:
        """Deletes pods that have ended from the API; returns whether all are gone."""
        items = []
        for uid, pod in ended:
            options = DeleteOptions(grace_period_seconds=0, uid=pod.uid or "")
            item = self._store.build_delete(pod, options)
            if item is not None:
                items.append((uid, pod, item))
        results = self._store.write([item for *_, item in items])
        complete = True
        for (uid, pod, item), result in zip(items, results, strict=True):
            if result.ok or result.status is WriteStatus.NOT_FOUND:
                if item.op == "delete":
                    self.forget(uid)
            else:
                log.info("pod was not deleted, trying again", pod=pod.key, why=result.status)
                complete = False
        return complete


def _can_be_deleted(pod: Pod, versioned: VersionedStatus) -> bool:
    return (
        pod.deleting
        and not is_mirror_pod(pod)
        and pod.status.phase in TERMINAL
        and versioned.finished
    )


def _start_time(old: PodStatus, status: PodStatus, now: datetime) -> datetime:
    return old.start_time or status.start_time or now
