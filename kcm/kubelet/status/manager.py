"""The status manager: what the kubelet last found out of each pod, and its way to the API.

Guarantees: statuses are taken at once, also while the store is away, and the last
one of each pod is written when it is back; a status is written only to the pod of
the same uid, over what others wrote to it; a pod is deleted from the API only when
its containers have really ended. Does not guarantee that every status in between
is written.

Source: pkg/kubelet/status/status_manager.go, Kubernetes 1.33.
Departure: what is due is written in one batch, upstream writes pod by pod.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime

import structlog

from kcm import errors
from kcm.api import scheme
from kcm.api.core_v1 import ContainerStatus, Pod, PodStatus
from kcm.apimachinery.meta_v1 import KubeObject
from kcm.clock import Clock
from kcm.kubelet.pods.pod_manager import PodManager
from kcm.kubelet.status.conditions import with_readiness
from kcm.kubelet.status.generate import concluded
from kcm.kubelet.status.merging import goes_back, merged, normalized, with_transition_times
from kcm.kubelet.status.phase import TERMINAL
from kcm.kubelet.types import is_mirror_pod, is_static_pod
from kcm.store import DeleteOptions, WriteItem, WriteStatus
from kcm.store.objects import ObjectStore
from kcm.store.rules import Subresource

log = structlog.get_logger("kcm.kubelet")

PODS = scheme.by_name("pods")
SYNC_PERIOD = 10.0  # seconds between looks at all pods
RETRY = 1.0  # seconds, after a write that failed


@dataclass(frozen=True)
class Versioned:
    """A status and its number; numbers only grow."""

    status: PodStatus
    version: int
    key: str  # of the pod in the API
    finished: bool = False  # nothing of the pod is left on the node


class StatusManager:
    """Thread-safe; `run` writes in the caller's thread."""

    def __init__(
        self,
        store: ObjectStore,
        pods: PodManager,
        clock: Clock,
        containers_may_run: Callable[[str], bool] = lambda _: False,
    ) -> None:
        self._store = store
        self._pods = pods
        self._clock = clock
        self.containers_may_run = containers_may_run
        self._lock = threading.RLock()
        self._statuses: dict[str, Versioned] = {}  # by the uid that the kubelet uses
        self._written: dict[str, int] = {}  # by the uid in the API: version
        self._wake = threading.Event()

    # --- what the kubelet finds out

    def get(self, uid: str) -> PodStatus | None:
        """The last status of a pod."""
        with self._lock:
            found = self._statuses.get(self._pods.translate(uid))
            return found.status if found else None

    def last(self, pod: Pod) -> PodStatus:
        """The last status, or what the API says as long as there is none."""
        return self.get(pod.uid or "") or pod.status

    def set(self, pod: Pod, status: PodStatus) -> None:
        """A new status; one that goes back is refused with a word in the log."""
        with self._lock:
            # A deleted pod's status is always new: it may be the last before the deletion.
            self._update(pod, status, force=pod.deleting, finished=False)

    def set_container(self, uid: str, container_id: str, **changes: bool) -> None:
        """Set `ready` or `started` of a running container, as a probe found it."""
        pod = self._pods.by_uid(uid)
        with self._lock:
            found = self._statuses.get(uid)
            if pod is None or found is None:
                return

            def changed(statuses: list[ContainerStatus] | None) -> list[ContainerStatus] | None:
                return [
                    one.replace(**changes) if one.container_id == container_id else one
                    for one in statuses or ()
                ] or None

            status = found.status.replace(
                container_statuses=changed(found.status.container_statuses),
                init_container_statuses=changed(found.status.init_container_statuses),
            )
            if "ready" in changes:
                status = with_readiness(pod, status)
            self._update(pod, status, force=False, finished=False)

    def terminate(self, pod: Pod) -> None:
        """Nothing of the pod is left: all its containers have an end, and so has its phase."""
        with self._lock:
            found = self._statuses.get(pod.uid or "")
            status = concluded(pod, found.status if found else pod.status)
            self._update(pod, status, force=True, finished=True)

    def forget(self, uid: str) -> None:
        """Nothing is known of the pod any more."""
        with self._lock:
            self._statuses.pop(uid, None)

    def remove_orphans(self, uids: Iterable[str]) -> None:
        """Forget all pods but these."""
        kept = set(uids)
        with self._lock:
            for uid in [uid for uid in self._statuses if uid not in kept]:
                del self._statuses[uid]

    def _update(self, pod: Pod, status: PodStatus, *, force: bool, finished: bool) -> None:
        uid = pod.uid or ""
        known = self._statuses.get(uid)
        mirror = self._pods.mirror_of(pod)
        old = known.status if known else (mirror or pod).status
        if goes_back(pod.spec, old, status):
            log.error("a container that had ended would run again, status dropped", pod=pod.key)
            return
        now = self._clock.now()
        status = with_transition_times(status, old, now)
        status = normalized(pod, status.replace(start_time=_start(old, status, now)))
        finished = finished or (known is not None and known.finished and not is_static_pod(pod))
        if known and known.status == status and known.finished == finished and not force:
            return
        version = known.version + 1 if known else 1
        self._statuses[uid] = Versioned(status, version, pod.key, finished)
        self._wake.set()

    # --- the way to the API

    def run(self, stop: threading.Event) -> None:
        """Write what is new at once, and look at all pods every 10 s."""
        next_look = 0.0
        while not stop.is_set():
            self._clock.wait(self._wake, SYNC_PERIOD)
            self._wake.clear()
            everything = self._clock.monotonic() >= next_look
            if everything:
                next_look = self._clock.monotonic() + SYNC_PERIOD
            if not self._contained(everything) and not stop.is_set():
                self._clock.wait(stop, RETRY)
                self._wake.set()

    def wake(self) -> None:
        self._wake.set()

    def _contained(self, everything: bool) -> bool:
        try:
            return self.sync_batch(everything=everything)
        except errors.Temporary as error:
            log.info("statuses wait for the store", error=str(error))
        except errors.KcmError as error:
            log.warning("statuses were not written", error=str(error))
        return False

    def sync_batch(self, *, everything: bool = False) -> bool:
        """Write what is due; with `everything` also what the API has otherwise.

        False when some has to be tried again. Raises: Temporary.
        """
        due = self._due(everything)
        if not due:
            return True
        found = self._store.get_all([(PODS, one.key) for one in due.values()])
        return self._write(
            [
                (uid, one, pod)
                for (uid, one), pod in zip(due.items(), found, strict=True)
                if isinstance(pod, Pod) and self._is_same(uid, one, pod)
            ]
        )

    def _due(self, everything: bool) -> dict[str, Versioned]:
        with self._lock:
            if everything:
                self._forget_versions()
            due: dict[str, Versioned] = {}
            for uid, one in self._statuses.items():
                api = self._pods.api_uid(uid)
                if api is None:
                    continue  # a static pod without a mirror
                if self._written.get(api, 0) < one.version or (
                    everything and self._differs(uid, one)
                ):
                    due[uid] = one
            return due

    def _forget_versions(self) -> None:
        kept = {self._pods.api_uid(uid) for uid in self._statuses}
        self._written = {uid: n for uid, n in self._written.items() if uid in kept}

    def _differs(self, uid: str, one: Versioned) -> bool:
        """Whether the API is known to say otherwise, or the pod can be deleted."""
        pod = self._pods.by_uid(uid)
        if pod is None:
            return False
        if is_static_pod(pod):
            pod = self._pods.mirror_of(pod)
            if pod is None:
                return False
        if _may_be_deleted(pod, one):
            return True
        return normalized(pod, pod.status) != self._merged(uid, pod, one)

    def _is_same(self, uid: str, one: Versioned, pod: Pod) -> bool:
        if self._pods.translate(pod.uid or "") == uid:
            return True
        with self._lock:  # deleted and made again: nothing of this status is its
            if self._statuses.get(uid) == one:
                del self._statuses[uid]
        return False

    def _merged(self, uid: str, pod: Pod, one: Versioned) -> PodStatus:
        runs = self.containers_may_run(uid)
        return normalized(pod, merged(pod.status, one.status, containers_may_run=runs))

    def _write(self, due: list[tuple[str, Versioned, Pod]]) -> bool:
        items: list[tuple[str, Versioned, Pod, WriteItem | None]] = []
        for uid, one, pod in due:
            new = pod.with_status(self._merged(uid, pod, one))
            try:
                item = self._store.modification(new, pod, subresource=Subresource.STATUS)
            except errors.ApiError as error:
                log.warning("a status was refused", pod=pod.key, error=str(error))
                self._note(pod, one)
                continue
            items.append((uid, one, new, item))
        return self._sent(items)

    def _sent(self, items: list[tuple[str, Versioned, Pod, WriteItem | None]]) -> bool:
        """Write them in one batch, then delete the pods that have ended."""
        results = iter(self._store.write([item for *_, item in items if item is not None]))
        fine, ended = True, []
        for uid, one, pod, item in items:
            stored: KubeObject = pod
            if item is not None:
                result = next(results)
                if not result.ok:
                    log.debug("a status was not written", pod=pod.key, why=result.status)
                    fine = fine and result.status is WriteStatus.NOT_FOUND
                    continue
                stored = result.stored()
            assert isinstance(stored, Pod)
            self._note(stored, one)
            if _may_be_deleted(stored, one):
                ended.append((uid, stored))
        return self._delete(ended) and fine

    def _note(self, pod: Pod, one: Versioned) -> None:
        with self._lock:
            self._written[pod.uid or ""] = one.version

    def _delete(self, ended: list[tuple[str, Pod]]) -> bool:
        """Remove pods that have ended from the API."""
        items = []
        for uid, pod in ended:
            options = DeleteOptions(grace_period_seconds=0, uid=pod.uid or "")
            item = self._store.deletion(pod, options)
            if item is not None:
                items.append((uid, pod, item))
        results = self._store.write([item for *_, item in items])
        fine = True
        for (uid, pod, item), result in zip(items, results, strict=True):
            if result.ok or result.status is WriteStatus.NOT_FOUND:
                if item.op == "delete":
                    with self._lock:
                        self._statuses.pop(uid, None)
            else:
                log.info("pod was not deleted, trying again", pod=pod.key, why=result.status)
                fine = False
        return fine


def _may_be_deleted(pod: Pod, one: Versioned) -> bool:
    return pod.deleting and not is_mirror_pod(pod) and pod.status.phase in TERMINAL and one.finished


def _start(old: PodStatus, status: PodStatus, now: datetime) -> datetime:
    return old.start_time or status.start_time or now
