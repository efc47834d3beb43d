"""Pod workers: take one update of a pod at a time through three phases, in this order.

    sync         the pod should run
    terminating  the pod should stop: no container starts, and the grace period can only shrink
    terminated   the pod's containers have ended, and its volumes are removed

Guarantees: one thread at a time works on a pod (by uid). Of the updates that arrive meanwhile the
last is kept. An update that terminates the pod is never replaced by one that does not. A pod that
has ended does not start again under the same uid until housekeeping has forgotten it.

Source: pkg/kubelet/pod_workers.go, Kubernetes 1.33. `work` has the role of managePodLoop in
Kubernetes 1.12, `_plan_next_sync` that of wrapUp.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace

import structlog

from kcm import errors
from kcm.api.core_v1 import PodStatus
from kcm.clock import Clock
from kcm.kubelet.cri import SandboxState
from kcm.kubelet.metrics import KubeletMetrics
from kcm.kubelet.pod_workers.pod_cache import PodCache
from kcm.kubelet.pod_workers.pod_states import PodStates
from kcm.kubelet.pod_workers.pod_sync_status import (
    KillPodOptions,
    PodSyncStatus,
    UpdatePodOptions,
    WorkType,
    drop_kill,
    effective_grace,
)
from kcm.kubelet.pod_workers.pod_syncer import PodSyncer
from kcm.kubelet.pod_workers.work_queue import DelayQueue, WorkThreads
from kcm.kubelet.recorder import KubeletEventRecorder
from kcm.kubelet.status.phase import TERMINAL
from kcm.kubelet.sync_context import SyncCancelled, SyncContext
from kcm.kubelet.types import SyncPodType, full_name, is_static_pod

log = structlog.get_logger("kcm.kubelet")

RESYNC_INTERVAL = 60.0  # seconds; upstream's --sync-frequency
BACK_OFF_PERIOD = 10.0  # seconds, after a sync that failed
_JITTER = 0.5


class PodWorkers:
    """Takes updates of pods and works on them in threads. Thread-safe."""

    def __init__(
        self,
        syncer: PodSyncer,
        *,
        states: PodStates,
        cache: PodCache,
        recorder: KubeletEventRecorder,
        clock: Clock,
        metrics: KubeletMetrics,
        notify_work: Callable[[str], None] | None = None,
        resync_interval: float = RESYNC_INTERVAL,
        back_off_period: float = BACK_OFF_PERIOD,
    ) -> None:
        """`notify_work` is called with the uid of a pod that waits for a thread."""
        self._syncer = syncer
        self._states = states
        self._lock = states.lock
        self._cache = cache
        self._recorder = recorder
        self._clock = clock
        self._metrics = metrics
        self._resync_interval = resync_interval
        self._back_off_period = back_off_period
        self.queue = DelayQueue(clock)
        self.threads = WorkThreads(self.work, clock, notify_work=notify_work)

    # --- receiving updates

    def update_pod(self, update: UpdatePodOptions) -> None:
        """Takes an update, which a thread works on soon.

        Ignores updates of pods that have finished, and updates without a pod that do not kill.
        """
        runtime_only = update.pod is None
        if runtime_only and update.update_type is not SyncPodType.KILL:
            log.warning("Pod update is ignored, only a kill needs no pod", uid=update.uid)
            return
        if not runtime_only and update.running_pod is not None:
            update = replace(update, running_pod=None)
        with self._lock:
            status = self._states.statuses.get(update.uid)
            if status is None:
                status = self._states.statuses[update.uid] = self._new_status(update)
                self._accept(status, update)
                return
            update = self._with_known_pod(status, update)
            if status.is_termination_requested and update.update_type is SyncPodType.CREATE:
                # A static pod was added again under its uid: it starts again after its end.
                status.restart_requested = True
            elif not status.finished:
                self._accept(status, update)

    def _new_status(self, update: UpdatePodOptions) -> PodSyncStatus:
        now = self._clock.now()
        status = PodSyncStatus(synced_at=now, full_name=update.full_name)
        pod = update.pod
        if pod is None:
            status.observed_runtime = True
        elif pod.status.phase in TERMINAL and not self._runs(update.uid):
            # The pod ended before the kubelet started: it must not count as active.
            status.terminating_at = status.terminated_at = now
        return status

    def _runs(self, uid: str) -> bool:
        """Reports whether the pod has a running container or a ready sandbox, or may have one."""
        try:
            view = self._cache.get(uid)
        except errors.KcmError:
            return True
        return bool(view.list_running()) or any(
            sandbox.state is SandboxState.READY for sandbox in view.sandboxes
        )

    def _with_known_pod(self, status: PodSyncStatus, update: UpdatePodOptions) -> UpdatePodOptions:
        """Returns the update with the pod that the worker knows under its uid, if it has none."""
        if update.pod is not None:
            return update
        status.observed_runtime = True
        for known_update in (status.pending, status.active):
            if known_update is not None and known_update.pod is not None:
                return replace(update, pod=known_update.pod, running_pod=None)
        return update

    def _accept(self, status: PodSyncStatus, update: UpdatePodOptions) -> None:
        """Makes the update the pending one.

        Cancels the running sync if the pod begins to terminate, or shortens its grace period.
        """
        begins_to_end = self._begin_termination(status, update)
        shortened = False
        if status.is_terminated:
            if update.running_pod is not None:
                return
            update = drop_kill(update)
        elif status.is_termination_requested:
            update, shortened = self._merge_kill(status, update)
        else:
            update = drop_kill(update)
        if status.pending is not None and status.pending.start_time < update.start_time:
            update = replace(update, start_time=status.pending.start_time)
        status.pending = update
        status.working = True
        self.threads.add(update.uid)
        if status.context is None:
            return
        if begins_to_end:
            status.context.cancel()
        elif shortened and status.grace is not None:
            status.context.shorten_grace(status.grace)

    def _begin_termination(self, status: PodSyncStatus, update: UpdatePodOptions) -> bool:
        """Sets the pod to terminating if the update asks for it; returns whether that is new."""
        if status.is_termination_requested:
            return False
        pod, kill = update.pod, update.kill
        if update.running_pod is not None or (pod is not None and pod.deleting):
            status.deleted = True
        elif pod is not None and pod.status.phase in TERMINAL:
            pass
        elif update.update_type is SyncPodType.KILL:
            status.evicted = kill is not None and kill.evict
        else:
            return False
        status.terminating_at = self._clock.now()
        return True

    def _merge_kill(
        self, status: PodSyncStatus, update: UpdatePodOptions
    ) -> tuple[UpdatePodOptions, bool]:
        """Returns the update with the shortest grace period so far, and whether that is new."""
        kill = update.kill or KillPodOptions()
        if kill.on_completed is not None:
            status.on_terminated.append(kill.on_completed)
        if kill.update_status is not None:
            status.status_updates.append(kill.update_status)
        grace, shortened = effective_grace(status, update.pod, kill)
        status.grace = grace
        if update.pod is not None and update.pod.deleting:
            status.deleted = True
        return replace(update, kill=replace(kill, grace_seconds=grace)), shortened

    # --- work on updates

    def work(self, uid: str) -> None:
        """Works on the pending update of a pod, in this thread. Does nothing if there is none."""
        started = self._start_work(uid)
        if started is None:
            return
        work_type, update, context = started
        began = self._clock.monotonic()
        failure: Exception | None = None
        terminal = False
        try:
            terminal = self._sync(uid, work_type, update, context)
        except Exception as error:  # noqa: BLE001 - whatever failed is tried again later
            failure = error
            if not isinstance(error, SyncCancelled):
                text = str(error) or type(error).__name__
                log.warning("Error syncing pod, skipping", pod=update.full_name, error=text)
        if update.on_complete is not None:
            update.on_complete(failure)
        self._metrics.observe_pod_worker(update.update_type.value, self._clock.monotonic() - began)
        self._finish_work(uid, work_type, update, terminal=terminal, failure=failure)

    def _sync(
        self, uid: str, work_type: WorkType, update: UpdatePodOptions, context: SyncContext
    ) -> bool:
        """Does the work of one phase; returns whether the pod has ended by itself."""
        pod, running = update.pod, update.running_pod
        if running is not None:
            self._syncer.sync_terminating_runtime_pod(context, running)
            return False
        assert pod is not None
        try:
            view = self._cache.get_newer_than(uid, self._last_sync(uid))
        except errors.KcmError as error:
            text = f"error determining status: {error}"
            self._recorder.record_pod_event(pod, "Warning", "FailedSync", text)
            raise
        try:
            match work_type:
                case WorkType.TERMINATED:
                    self._syncer.sync_terminated_pod(context, pod, view)
                    return False
                case WorkType.TERMINATING:
                    grace = update.kill.grace_seconds if update.kill else None
                    update_status = self._last_status_update(uid)
                    self._syncer.sync_terminating_pod(context, pod, view, grace, update_status)
                    return False
            mirror = update.mirror_pod
            return self._syncer.sync_pod(context, update.update_type, pod, mirror, view)
        finally:
            self._set_last_sync(uid)

    def _start_work(self, uid: str) -> tuple[WorkType, UpdatePodOptions, SyncContext] | None:
        """Takes the pending update of a pod, with its phase and the context of its sync.

        Returns None if there is none, or if the pod cannot start yet.
        """
        with self._lock:
            status = self._states.statuses.get(uid)
            if status is None:
                return None
            if status.pending is None:
                status.working = False
                return None
            if status.started_at is None and not self._claim_start(uid, status):
                return None
            update, status.pending = status.pending, None
            status.started_at = status.started_at or self._clock.now()
            status.merge_last_update(update)
            context = status.context
            if context is None or context.cancelled.is_set() or status.is_termination_requested:
                context = status.context = SyncContext()
            return status.work_type, update, context

    def _claim_start(self, uid: str, status: PodSyncStatus) -> bool:
        """Takes a static pod's full name, under which one pod at a time may run.

        Returns False if another pod has the name: the pod waits for its turn, and is tried again
        later. A pod that should terminate before it has started is finished without starting. Pods
        that are not static start at once.
        """
        pod = status.pending.pod if status.pending else None
        if pod is None or not is_static_pod(pod):
            return True
        name, states = full_name(pod), self._states
        if status.is_termination_requested and not status.observed_runtime:
            # The pod never ran, so there is nothing to kill.
            status.finished = True
            status.working = False
            status.terminated_at = self._clock.now()
            states.stop_waiting(name, uid)
            return False
        waiting = states.waiting_static.setdefault(name, [])
        if uid not in waiting:
            waiting.append(uid)
        if states.started_static.get(name, uid) == uid and waiting[0] == uid:
            states.stop_waiting(name, uid)
            states.started_static[name] = uid
            return True
        status.working = False
        self.queue.enqueue(uid, self._add_jitter(self._back_off_period))
        return False

    def _last_sync(self, uid: str) -> float:
        with self._lock:
            status = self._states.statuses.get(uid)
            return status.last_sync if status else 0.0

    def _set_last_sync(self, uid: str) -> None:
        with self._lock:
            if (status := self._states.statuses.get(uid)) is not None:
                status.last_sync = self._clock.monotonic()

    def _last_status_update(self, uid: str) -> Callable[[PodStatus], PodStatus] | None:
        with self._lock:
            status = self._states.statuses.get(uid)
            return status.status_updates[-1] if status and status.status_updates else None

    def _finish_work(
        self,
        uid: str,
        work_type: WorkType,
        update: UpdatePodOptions,
        *,
        terminal: bool,
        failure: Exception | None,
    ) -> None:
        """Moves the pod on to its next phase if its work succeeded, and plans its next sync.

        A pod that is terminated has no next sync. `terminal` says that the pod has ended by itself.
        """
        with self._lock:
            status = self._states.statuses.get(uid)
            if status is None:
                return
            if failure is None:
                if work_type is WorkType.TERMINATED or update.running_pod is not None:
                    self._complete_terminated(uid, status)
                    return
                if work_type is WorkType.TERMINATING:
                    self._complete_terminating(status)
                elif terminal:
                    status.terminating_at = status.terminating_at or self._clock.now()
                if (work_type is WorkType.TERMINATING or terminal) and status.pending is None:
                    status.pending = self._repeat_last_update(status)
        soonest: float | None = getattr(failure, "retry_after", None)
        self._plan_next_sync(uid, failed=failure is not None, soonest=soonest)

    def _repeat_last_update(self, status: PodSyncStatus) -> UpdatePodOptions | None:
        """Returns the last update again, for the pod's next phase."""
        active = status.active
        if active is None:
            return None
        if status.is_termination_requested and not status.is_terminated:
            kill = active.kill or KillPodOptions()
            grace, _ = effective_grace(status, active.pod, kill)
            status.grace = grace
            active = replace(active, kill=replace(kill, grace_seconds=grace))
        return active

    def _complete_terminating(self, status: PodSyncStatus) -> None:
        status.terminated_at = self._clock.now()
        status.notify_terminated()
        status.status_updates = []

    def _complete_terminated(self, uid: str, status: PodSyncStatus) -> None:
        status.terminated_at = status.terminated_at or self._clock.now()
        status.finished = True
        status.working = False
        status.pending = None
        status.notify_terminated()
        self._states.release_static_name(status.full_name, uid)

    def _plan_next_sync(self, uid: str, *, failed: bool, soonest: float | None = None) -> None:
        """Plans the next sync, after `soonest` seconds if that is before the back-off period."""
        with self._lock:
            status = self._states.statuses.get(uid)
            if status is not None and status.pending is not None:
                self.threads.add(uid)
                return
            if status is not None:
                status.working = False
        delay = self._back_off_period if failed else self._resync_interval
        if soonest is not None and soonest < delay:
            self.queue.enqueue(uid, soonest)
            return
        self.queue.enqueue(uid, self._add_jitter(delay))

    def _add_jitter(self, seconds: float) -> float:
        return seconds * (1 + random.random() * _JITTER)
