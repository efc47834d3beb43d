"""The SyncHandler: from what happened to pods to work for their workers.

Source: HandlePodAdditions to HandlePodSyncs in pkg/kubelet/kubelet.go and
HandlePodCleanups in pkg/kubelet/kubelet_pods.go, Kubernetes 1.33. `dispatch_work` is 1.12's
dispatchWork; deletePod sends a kill to the worker, which is what 1.12's podKiller was for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime

import structlog

from kcm import errors
from kcm.api.core_v1 import Node, Pod
from kcm.clock import Clock
from kcm.kubelet.admission import Handler, Refusal, Taken, predicates, rejected
from kcm.kubelet.environment.store_lookups import StoreLookups
from kcm.kubelet.kuberuntime.manager import RuntimeManager
from kcm.kubelet.loop.cleanup import Cleanup
from kcm.kubelet.metrics import Metrics
from kcm.kubelet.pod_workers import active_deadline
from kcm.kubelet.pod_workers.pod_cache import PodCache
from kcm.kubelet.pod_workers.pod_sync_status import UpdatePodOptions
from kcm.kubelet.pod_workers.pod_workers import PodWorkers
from kcm.kubelet.pods.pod_manager import PodManager
from kcm.kubelet.recorder import Recorder
from kcm.kubelet.status.conditions import needs_readiness_reconciled
from kcm.kubelet.status.manager import StatusManager
from kcm.kubelet.status.phase import FAILED, TERMINAL
from kcm.kubelet.types import SyncPodType, is_mirror_pod, is_static_pod

log = structlog.get_logger("kcm.kubelet")

_FIRST = datetime.min.replace(tzinfo=UTC)


class Handlers:
    """Used by the sync loop's thread only. Nothing here waits."""

    def __init__(
        self,
        *,
        pods: PodManager,
        workers: PodWorkers,
        statuses: StatusManager,
        cache: PodCache,
        manager: RuntimeManager,
        cleanup: Cleanup,
        recorder: Recorder,
        metrics: Metrics,
        clock: Clock,
        node: Callable[[], Node],
        lookups: StoreLookups | None = None,
    ) -> None:
        self._pods = pods
        self._workers = workers
        self._statuses = statuses
        self._cache = cache
        self._manager = manager
        self._cleanup = cleanup
        self._recorder = recorder
        self._metrics = metrics
        self._clock = clock
        self._node = node
        self._lookups = lookups
        # Asked in order, before what the node itself allows: the eviction manager's, for one.
        self.admit_handlers: list[Handler] = []

    # --- configCh

    def handle_pod_additions(self, pods: Sequence[Pod]) -> None:
        """New pods, the oldest first; those that the node refuses fail at once."""
        start = self._clock.monotonic()
        if pods and self._lookups is not None:
            self._lookups.invalidate()
        for pod in sorted(pods, key=lambda pod: pod.metadata.creation_timestamp or _FIRST):
            others = [other for other in self._pods.pods() if other.uid != pod.uid]
            # Before all else: the pod manager says what is desired; what is not in it is deleted.
            self._pods.add(pod)
            if is_mirror_pod(pod):
                self._mirror(pod, start)
                continue
            if not self._workers.is_termination_requested(pod.uid or ""):
                refusal = None if self._is_over(pod) else self._refusal(pod, others)
                if refusal is not None:
                    self._reject(pod, refusal)
                    continue
            self.dispatch_work(pod, SyncPodType.CREATE, self._pods.mirror_of(pod), start)

    def handle_pod_updates(self, pods: Sequence[Pod]) -> None:
        """Pods whose spec, labels, annotations or deletion changed."""
        start = self._clock.monotonic()
        for pod in pods:
            self._pods.update(pod)
            if is_mirror_pod(pod):
                self._mirror(pod, start)
                continue
            self.dispatch_work(pod, SyncPodType.UPDATE, self._pods.mirror_of(pod), start)

    def handle_pod_removes(self, pods: Sequence[Pod]) -> None:
        """Pods that are gone from their source: what runs of them ends."""
        start = self._clock.monotonic()
        for pod in pods:
            self._pods.remove(pod)
            if is_mirror_pod(pod):
                self._mirror(pod, start)
                continue
            self.delete_pod(pod)

    def handle_pod_reconcile(self, pods: Sequence[Pod]) -> None:
        """Pods of which only the status changed, by us or by others."""
        start = self._clock.monotonic()
        for pod in pods:
            self._pods.update(pod)
            if is_mirror_pod(pod):
                continue
            if needs_readiness_reconciled(pod):
                self.dispatch_work(pod, SyncPodType.SYNC, self._pods.mirror_of(pod), start)
            if pod.status.phase == FAILED and pod.status.reason == "Evicted":
                self.clean_up_containers_in_pod(pod.uid or "", "", remove_all=True)

    # --- syncCh, plegCh, probes

    def handle_pod_syncs(self, pods: Sequence[Pod]) -> None:
        """Pods that are to be looked at."""
        start = self._clock.monotonic()
        for pod in pods:
            self.dispatch_work(pod, SyncPodType.SYNC, self._pods.mirror_of(pod), start)

    def pods_to_sync(self) -> Sequence[Pod]:
        """Pods whose resync or back-off is due, and those whose time is over (getPodsToSync)."""
        due = set(self._workers.queue.get_work())
        return [pod for pod in self._pods.pods() if pod.uid in due or self._is_past(pod)]

    def _is_past(self, pod: Pod) -> bool:
        status = self._statuses.last(pod)
        past = active_deadline.is_past(pod, status.start_time, self._clock.now())
        return past and status.phase not in TERMINAL

    def clean_up_containers_in_pod(
        self, uid: str, container_id: str, *, remove_all: bool = False
    ) -> None:
        """A container has ended: remove the ones before it; of a pod that is over, all."""
        try:
            view = self._cache.get(uid)
        except errors.KcmError:
            return
        remove_all = remove_all or self._workers.should_content_be_removed(uid)
        self._manager.remove_surplus(view, container_id, remove_all=remove_all)

    # --- housekeepingCh

    def handle_pod_cleanups(self) -> None:
        """See `Cleanup`; and static pods that have no mirror, since they were here before the
        API was, make one."""
        self._cleanup.run()
        if self._node().uid:
            self.handle_pod_syncs([pod for pod in self._pods.pods() if self._lacks_mirror(pod)])

    def _lacks_mirror(self, pod: Pod) -> bool:
        return (
            is_static_pod(pod)
            and self._pods.mirror_of(pod) is None
            and not self._workers.is_termination_requested(pod.uid or "")
            and not self._is_over(pod)  # refused
        )

    # --- work

    def dispatch_work(self, pod: Pod, kind: SyncPodType, mirror: Pod | None, start: float) -> None:
        """Give a pod to its worker."""
        self._workers.update_pod(
            UpdatePodOptions(kind, pod=pod, mirror_pod=mirror, start_time=start)
        )
        if kind is SyncPodType.CREATE:
            self._metrics.containers(len(pod.spec.containers))

    def delete_pod(self, pod: Pod) -> None:
        """End a pod that is no longer desired; its volumes and folders are housekeeping's."""
        self._workers.update_pod(UpdatePodOptions(SyncPodType.KILL, pod=pod))

    def _mirror(self, mirror: Pod, start: float) -> None:
        """A mirror came, changed or went: its static pod sees to it."""
        pod, _, _ = self._pods.pod_and_mirror(mirror)
        if pod is not None:
            self._statuses.wake()  # a new mirror has no status yet
            self.dispatch_work(pod, SyncPodType.UPDATE, self._pods.mirror_of(pod), start)

    # --- admission

    def _refusal(self, pod: Pod, others: Iterable[Pod]) -> Refusal | None:
        active = self.active_pods(others)
        for handler in self.admit_handlers:
            if (refusal := handler(pod, active)) is not None:
                return refusal
        return predicates(pod, Taken.of([pod]), Taken.of(active), self._node())

    def active_pods(self, pods: Iterable[Pod]) -> list[Pod]:
        """Pods that take up room on the node."""
        return [pod for pod in pods if self._is_active(pod)]

    def _is_active(self, pod: Pod) -> bool:
        uid = pod.uid or ""
        if self._workers.is_known_terminated(uid):
            return False
        return not self._is_over(pod) or self._workers.is_termination_requested(uid)

    def _is_over(self, pod: Pod) -> bool:
        return pod.status.phase in TERMINAL or self._statuses.last(pod).phase in TERMINAL

    def _reject(self, pod: Pod, refusal: Refusal) -> None:
        self._recorder.of_pod(pod, "Warning", refusal.reason, refusal.message)
        self._statuses.set(pod, rejected(pod, refusal))
