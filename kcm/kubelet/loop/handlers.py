"""The SyncHandler: turns changes of pods into updates for the pod workers.

Source: HandlePodAdditions to HandlePodSyncs in pkg/kubelet/kubelet.go and HandlePodCleanups in
pkg/kubelet/kubelet_pods.go, Kubernetes 1.33. `dispatch_work` is dispatchWork of Kubernetes 1.12;
`delete_pod` sends a kill to the worker, which replaces 1.12's podKiller.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

import structlog

from kcm import errors
from kcm.api.core_v1 import Pod
from kcm.clock import Clock
from kcm.kubelet.admission import (
    NODE_AFFINITY,
    AdmitHandler,
    NodeUsage,
    Rejection,
    build_rejected_status,
    check_predicates,
)
from kcm.kubelet.environment.store_lookups import StoreLookups
from kcm.kubelet.kuberuntime.manager import RuntimeManager
from kcm.kubelet.loop.cleanup import Cleanup
from kcm.kubelet.metrics import KubeletMetrics
from kcm.kubelet.node.current_node import CurrentNode
from kcm.kubelet.pod_workers import active_deadline
from kcm.kubelet.pod_workers.active_pods import ActivePods
from kcm.kubelet.pod_workers.allocations import Allocations
from kcm.kubelet.pod_workers.pod_cache import PodCache
from kcm.kubelet.pod_workers.pod_states import PodStates
from kcm.kubelet.pod_workers.pod_sync_status import UpdatePodOptions
from kcm.kubelet.pod_workers.pod_workers import PodWorkers
from kcm.kubelet.pods.pod_manager import PodManager
from kcm.kubelet.recorder import KubeletEventRecorder
from kcm.kubelet.status.conditions import needs_readiness_reconciled
from kcm.kubelet.status.manager import StatusManager
from kcm.kubelet.status.phase import FAILED, TERMINAL
from kcm.kubelet.types import SyncPodType, is_mirror_pod, is_static_pod

log = structlog.get_logger("kcm.kubelet")

_OLDEST = datetime.min.replace(tzinfo=UTC)  # for pods without a creation time
_EVICTED = "Evicted"  # the reason in the status of a pod that was evicted


class PodHandlers:
    """Implements syncloop.SyncHandler for the sync loop's thread, which it never blocks."""

    def __init__(
        self,
        *,
        pods: PodManager,
        states: PodStates,
        active_pods: ActivePods,
        workers: PodWorkers,
        statuses: StatusManager,
        cache: PodCache,
        runtime_manager: RuntimeManager,
        cleanup: Cleanup,
        recorder: KubeletEventRecorder,
        metrics: KubeletMetrics,
        clock: Clock,
        node: CurrentNode,
        allocations: Allocations,
        lookups: StoreLookups | None = None,
        admit_handlers: Sequence[AdmitHandler] = (),
    ) -> None:
        """`admit_handlers` are called in their order, before the node's own admission."""
        self._pods = pods
        self._states = states
        self._active_pods = active_pods
        self._workers = workers
        self._statuses = statuses
        self._cache = cache
        self._runtime_manager = runtime_manager
        self._cleanup = cleanup
        self._recorder = recorder
        self._metrics = metrics
        self._clock = clock
        self._node = node
        self._allocations = allocations
        self._lookups = lookups
        self._admit_handlers = admit_handlers

    # --- configCh

    def handle_pod_additions(self, pods: Sequence[Pod]) -> None:
        """Starts new pods, the oldest first. Pods that the node rejects get the phase Failed."""
        start = self._clock.monotonic()
        if pods and self._lookups is not None:
            self._lookups.invalidate()
        for pod in sorted(pods, key=lambda pod: pod.metadata.creation_timestamp or _OLDEST):
            # This comes first: housekeeping removes pods that the pod manager does not have.
            self._pods.add(pod)
            if is_mirror_pod(pod):
                self._handle_mirror(pod, start)
                continue
            if not self._states.is_termination_requested(pod.uid or ""):
                over = self._active_pods.is_terminal(pod)
                rejection = None if over else self._check_admission(pod)
                if rejection is not None:
                    self._reject(pod, rejection)
                    continue
            self.dispatch_work(pod, SyncPodType.CREATE, self._pods.mirror_of(pod), start)

    def handle_pod_updates(self, pods: Sequence[Pod]) -> None:
        """Updates pods whose spec, labels, annotations or deletion has changed."""
        start = self._clock.monotonic()
        for pod in pods:
            self._pods.update(pod)
            if is_mirror_pod(pod):
                self._handle_mirror(pod, start)
                continue
            self.dispatch_work(pod, SyncPodType.UPDATE, self._pods.mirror_of(pod), start)

    def handle_pod_removes(self, pods: Sequence[Pod]) -> None:
        """Kills pods that are gone from their source."""
        start = self._clock.monotonic()
        for pod in pods:
            self._pods.remove(pod)
            if is_mirror_pod(pod):
                self._handle_mirror(pod, start)
                continue
            self.delete_pod(pod)

    def handle_pod_reconcile(self, pods: Sequence[Pod]) -> None:
        """Handles pods of which only the status has changed, whoever has written it.

        Syncs pods whose readiness gates may have changed, and removes the containers of evicted
        pods.
        """
        start = self._clock.monotonic()
        for pod in pods:
            self._pods.update(pod)
            if is_mirror_pod(pod):
                continue
            if needs_readiness_reconciled(pod):
                self.dispatch_work(pod, SyncPodType.SYNC, self._pods.mirror_of(pod), start)
            if pod.status.phase == FAILED and pod.status.reason == _EVICTED:
                self.clean_up_containers_in_pod(pod.uid or "", "", remove_all=True)

    # --- syncCh, plegCh, probes

    def handle_pod_syncs(self, pods: Sequence[Pod]) -> None:
        """Syncs the pods."""
        start = self._clock.monotonic()
        for pod in pods:
            self.dispatch_work(pod, SyncPodType.SYNC, self._pods.mirror_of(pod), start)

    def get_pods_to_sync(self) -> Sequence[Pod]:
        """Returns the pods that are due to be synced, and those past their active deadline."""
        due = set(self._workers.queue.get_work())
        return [pod for pod in self._pods.pods() if pod.uid in due or self._is_past_deadline(pod)]

    def _is_past_deadline(self, pod: Pod) -> bool:
        status = self._statuses.last(pod)
        past = active_deadline.is_past(pod, status.start_time, self._clock.now())
        return past and status.phase not in TERMINAL

    def clean_up_containers_in_pod(
        self, uid: str, container_id: str, *, remove_all: bool = False
    ) -> None:
        """Removes older dead containers after one has exited, or all if the pod is over."""
        try:
            view = self._cache.get(uid)
        except errors.KcmError:
            return
        remove_all = remove_all or self._states.should_content_be_removed(uid)
        self._runtime_manager.remove_dead_containers(view, container_id, remove_all=remove_all)

    # --- housekeepingCh

    def handle_pod_cleanups(self) -> None:
        """Cleans up, and syncs static pods without a mirror.

        Such pods were started while the node was not registered.
        """
        self._cleanup.run()
        if self._node.get_registered() is not None:
            self.handle_pod_syncs([pod for pod in self._pods.pods() if self._lacks_mirror(pod)])

    def _lacks_mirror(self, pod: Pod) -> bool:
        return (
            is_static_pod(pod)
            and self._pods.mirror_of(pod) is None
            and not self._states.is_termination_requested(pod.uid or "")
            and not self._active_pods.is_terminal(pod)  # as rejected pods are
        )

    # --- work for the pod workers

    def dispatch_work(
        self, pod: Pod, update_type: SyncPodType, mirror: Pod | None, start: float
    ) -> None:
        """Sends an update of a pod to its worker. `start` is when the cause of it was observed."""
        self._workers.update_pod(
            UpdatePodOptions(update_type, pod=pod, mirror_pod=mirror, start_time=start)
        )
        if update_type is SyncPodType.CREATE:
            self._metrics.observe_containers(len(pod.spec.containers))

    def delete_pod(self, pod: Pod) -> None:
        """Kills a pod that is no longer desired. Housekeeping removes its volumes and folders."""
        self._workers.update_pod(UpdatePodOptions(SyncPodType.KILL, pod=pod))

    def _handle_mirror(self, mirror: Pod, start: float) -> None:
        """Updates the static pod of a mirror that was added, changed or removed."""
        pod, _, _ = self._pods.pod_and_mirror(mirror)
        if pod is not None:
            self._statuses.wake()  # a new mirror has no status yet
            self.dispatch_work(pod, SyncPodType.UPDATE, self._pods.mirror_of(pod), start)

    # --- admission

    def _check_admission(self, pod: Pod) -> Rejection | None:
        others = (other for other in self._pods.pods() if other.uid != pod.uid)
        active = [self._allocations.apply(other) for other in self._active_pods.filter(others)]
        pod = self._allocations.apply(pod)
        for admit in self._admit_handlers:
            if (rejection := admit(pod, active)) is not None:
                return rejection
        requested, used = NodeUsage.of([pod]), NodeUsage.of(active)
        rejection = check_predicates(pod, requested, used, self._node.get())
        if rejection is None or rejection.reason != NODE_AFFINITY:
            return rejection
        # The scheduler may have seen a label that has not come here yet.
        return check_predicates(pod, requested, used, self._node.look_up())

    def _reject(self, pod: Pod, rejection: Rejection) -> None:
        self._recorder.record_pod_event(pod, "Warning", rejection.reason, rejection.message)
        self._statuses.set(pod, build_rejected_status(pod, rejection))
