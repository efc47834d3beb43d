"""Pod workers: one update of a pod at a time, through three phases and never back.

    sync         the pod shall run
    terminating  it shall end: nothing starts any more, the grace period only shrinks
    terminated   its containers have ended; what is left of it is cleared away

Guarantees: a pod (by uid) is worked on by one thread at a time; of the updates that
come meanwhile the last is kept; an update that ends the pod is never overwritten by
one that does not; a pod that has ended does not start again under the same uid until
housekeeping has forgotten it.

Source: pkg/kubelet/pod_workers.go, Kubernetes 1.33. The role of 1.12's
managePodLoop is `work`, wrapUp's is `_complete_work`.
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
from kcm.kubelet.metrics import Metrics
from kcm.kubelet.pod_workers.pod_cache import PodCache
from kcm.kubelet.pod_workers.pod_states import PodStates
from kcm.kubelet.pod_workers.pod_sync_status import (
    KillPodOptions,
    PodSyncStatus,
    UpdatePodOptions,
    WorkType,
    acknowledged,
    effective_grace,
)
from kcm.kubelet.pod_workers.pod_syncer import PodSyncer
from kcm.kubelet.pod_workers.work_queue import DelayQueue, WorkThreads
from kcm.kubelet.recorder import Recorder
from kcm.kubelet.status.phase import TERMINAL
from kcm.kubelet.sync_context import SyncCancelled, SyncContext
from kcm.kubelet.types import SyncPodType, full_name, is_static_pod

log = structlog.get_logger("kcm.kubelet")

RESYNC_INTERVAL = 60.0  # seconds: upstream's --sync-frequency
BACK_OFF_PERIOD = 10.0  # seconds, after a sync that failed
_JITTER = 0.5


class PodWorkers(PodStates):
    """See the module. Thread-safe."""

    def __init__(
        self,
        syncer: PodSyncer,
        cache: PodCache,
        recorder: Recorder,
        clock: Clock,
        *,
        metrics: Metrics | None = None,
        rng: random.Random | None = None,
        wake: Callable[[str], None] | None = None,
        resync_interval: float = RESYNC_INTERVAL,
        back_off_period: float = BACK_OFF_PERIOD,
    ) -> None:
        super().__init__()
        self._syncer = syncer
        self._cache = cache
        self._recorder = recorder
        self._clock = clock
        self._metrics = metrics or Metrics()
        self._rng = rng or random.Random()
        self._resync = resync_interval
        self._back_off = back_off_period
        self.queue = DelayQueue(clock)
        self.threads = WorkThreads(self.work, clock, wake=wake)

    # --- updates come in

    def update_pod(self, options: UpdatePodOptions) -> None:
        """Take an update; it is worked on soon, by some thread."""
        runtime_only = options.pod is None
        if runtime_only and options.update_type is not SyncPodType.KILL:
            log.warning("Pod update is ignored, only a kill needs no pod", uid=options.uid)
            return
        if not runtime_only and options.running_pod is not None:
            options = replace(options, running_pod=None)
        with self._lock:
            known = self._statuses.get(options.uid)
            status = known or self._new_status(options)
            self._statuses[options.uid] = status
            options = self._with_known_pod(status, options)
            if known is None or self._accepts(status, options):
                self._take(status, options)

    def _new_status(self, options: UpdatePodOptions) -> PodSyncStatus:
        now = self._clock.now()
        status = PodSyncStatus(synced_at=now, full_name=options.full_name)
        pod = options.pod
        if pod is not None and pod.status.phase in TERMINAL and self._is_over(options.uid):
            # It came to its end before the kubelet was started: it must not count as active.
            status.terminating_at = status.terminated_at = now
        return status

    def _is_over(self, uid: str) -> bool:
        try:
            view = self._cache.get(uid)
        except errors.KcmError:
            return False
        return not view.running() and not any(
            sandbox.state is SandboxState.READY for sandbox in view.sandboxes
        )

    def _with_known_pod(self, status: PodSyncStatus, options: UpdatePodOptions) -> UpdatePodOptions:
        """What is only known from the runtime, with the pod that was known before."""
        if options.pod is not None:
            return options
        status.observed_runtime = True
        for known in (status.pending, status.active):
            if known is not None and known.pod is not None:
                return replace(options, pod=known.pod, running_pod=None)
        return options

    def _accepts(self, status: PodSyncStatus, options: UpdatePodOptions) -> bool:
        if status.is_termination_requested and options.update_type is SyncPodType.CREATE:
            # The same uid once more (static pods): started anew after it has ended.
            status.restart_requested = True
            return False
        return not status.finished

    def _take(self, status: PodSyncStatus, options: UpdatePodOptions) -> None:
        terminates = self._note_termination(status, options)
        shortened = False
        if status.is_terminated:
            if options.running_pod is not None:
                return
            options = acknowledged(options)
        elif status.is_termination_requested:
            options, shortened = self._note_kill(status, options)
        else:
            options = acknowledged(options)
        if status.pending is not None and status.pending.start_time < options.start_time:
            options = replace(options, start_time=status.pending.start_time)
        status.pending = options
        status.working = True
        self.threads.add(options.uid)
        context = status.context
        if context is None:
            return
        if terminates:
            context.cancel()
        elif shortened and status.grace is not None:
            context.shorten(status.grace)

    def _note_termination(self, status: PodSyncStatus, options: UpdatePodOptions) -> bool:
        """Whether the pod begins to end with this update."""
        if status.is_termination_requested:
            return False
        pod, kill = options.pod, options.kill
        ends = True
        if options.running_pod is not None or (pod is not None and pod.deleting):
            status.deleted = True
        elif pod is not None and pod.status.phase in TERMINAL:
            pass
        elif options.update_type is SyncPodType.KILL:
            status.evicted = kill is not None and kill.evict
        else:
            ends = False
        if ends:
            status.terminating_at = self._clock.now()
        return ends

    def _note_kill(
        self, status: PodSyncStatus, options: UpdatePodOptions
    ) -> tuple[UpdatePodOptions, bool]:
        kill = options.kill or KillPodOptions()
        if kill.completed is not None:
            status.notify.append(kill.completed)
        if kill.status is not None:
            status.status_functions.append(kill.status)
        grace, shortened = effective_grace(status, options.pod, kill)
        status.grace = grace
        if options.pod is not None and options.pod.deleting:
            status.deleted = True
        return replace(options, kill=replace(kill, grace_seconds=grace)), shortened

    # --- and are worked on

    def work(self, uid: str) -> None:
        """Work on the pending update of a pod, in this thread."""
        started = self._start(uid)
        if started is None:
            return
        work_type, options, context = started
        begun = self._clock.monotonic()
        failure: Exception | None = None
        terminal = False
        try:
            terminal = self._do(uid, work_type, options, context)
        except Exception as error:  # noqa: BLE001 - whatever failed is tried again later
            failure = error
            if not isinstance(error, SyncCancelled):
                words = str(error) or type(error).__name__
                log.warning("Error syncing pod, skipping", pod=options.full_name, error=words)
        if options.on_complete is not None:
            options.on_complete(failure)
        self._metrics.pod_worker(options.update_type.value, self._clock.monotonic() - begun)
        self._finish(uid, work_type, options, terminal, failure)

    def _do(
        self, uid: str, work_type: WorkType, options: UpdatePodOptions, context: SyncContext
    ) -> bool:
        pod, running = options.pod, options.running_pod
        if running is not None:
            self._syncer.sync_terminating_runtime_pod(context, running)
            return False
        assert pod is not None
        try:
            view = self._cache.get_newer_than(uid, self._synced_at(uid))
        except errors.KcmError as error:
            text = f"error determining status: {error}"
            self._recorder.of_pod(pod, "Warning", "FailedSync", text)
            raise
        try:
            match work_type:
                case WorkType.TERMINATED:
                    self._syncer.sync_terminated_pod(context, pod, view)
                    return False
                case WorkType.TERMINATING:
                    grace = options.kill.grace_seconds if options.kill else None
                    status = self._acknowledge_terminating(uid)
                    self._syncer.sync_terminating_pod(context, pod, view, grace, status)
                    return False
            mirror = options.mirror_pod
            return self._syncer.sync_pod(context, options.update_type, pod, mirror, view)
        finally:
            self._note_synced(uid)

    def _start(self, uid: str) -> tuple[WorkType, UpdatePodOptions, SyncContext] | None:
        """Take the pending update; None when there is none, or the pod may not start yet."""
        with self._lock:
            status = self._statuses.get(uid)
            if status is None:
                return None
            if status.pending is None:
                status.working = False
                return None
            if status.started_at is None and not self._may_start(uid, status):
                return None
            options, status.pending = status.pending, None
            status.started_at = status.started_at or self._clock.now()
            status.merge(options)
            context = status.context
            if context is None or context.done.is_set() or status.is_termination_requested:
                context = status.context = SyncContext()
            return status.work_type, options, context

    def _may_start(self, uid: str, status: PodSyncStatus) -> bool:
        """Whether a static pod may start: none of the same name may run, first come first."""
        pod = status.pending.pod if status.pending else None
        if pod is None or not is_static_pod(pod):
            return True
        name = full_name(pod)
        if status.is_termination_requested and not status.observed_runtime:
            # It never ran, so there is nothing to end.
            status.finished = True
            status.working = False
            status.terminated_at = self._clock.now()
            self._forget_waiting(name, uid)
            return False
        waiting = self._waiting_static.setdefault(name, [])
        if uid not in waiting:
            waiting.append(uid)
        if self._static.get(name, uid) == uid and waiting[0] == uid:
            self._forget_waiting(name, uid)
            self._static[name] = uid
            return True
        status.working = False
        self.queue.enqueue(uid, self._jittered(self._back_off))
        return False

    def _synced_at(self, uid: str) -> float:
        with self._lock:
            status = self._statuses.get(uid)
            return status.last_sync if status else 0.0

    def _note_synced(self, uid: str) -> None:
        with self._lock:
            if (status := self._statuses.get(uid)) is not None:
                status.last_sync = self._clock.monotonic()

    def _acknowledge_terminating(self, uid: str) -> Callable[[PodStatus], PodStatus] | None:
        with self._lock:
            status = self._statuses.get(uid)
            if status is None:
                return None
            return status.status_functions[-1] if status.status_functions else None

    def _finish(
        self,
        uid: str,
        work_type: WorkType,
        options: UpdatePodOptions,
        terminal: bool,
        failure: Exception | None,
    ) -> None:
        moves_on = False
        with self._lock:
            status = self._statuses.get(uid)
            if status is None:
                return
            if failure is not None:
                pass
            elif work_type is WorkType.TERMINATED:
                self._complete_terminated(uid, status)
                return
            elif options.running_pod is not None:
                status.terminated_at = self._clock.now()
                self._complete_terminated(uid, status)
                return
            elif work_type is WorkType.TERMINATING:
                self._complete_terminating(status)
                moves_on = True
            elif terminal:
                status.terminating_at = status.terminating_at or self._clock.now()
                moves_on = True
            if moves_on and status.pending is None:
                status.pending = self._replayed(status)
        self._complete_work(uid, failure)

    def _replayed(self, status: PodSyncStatus) -> UpdatePodOptions | None:
        """The last update once more, for the next phase."""
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
        for notify in status.notify:
            notify()
        status.notify = []
        status.status_functions = []

    def _complete_terminated(self, uid: str, status: PodSyncStatus) -> None:
        status.finished = True
        status.working = False
        status.pending = None
        for notify in status.notify:
            notify()
        status.notify = []
        if self._static.get(status.full_name) == uid:
            del self._static[status.full_name]

    def _complete_work(self, uid: str, failure: Exception | None) -> None:
        """Plan the next sync."""
        with self._lock:
            status = self._statuses.get(uid)
            if status is not None and status.pending is not None:
                self.threads.add(uid)
                return
            if status is not None:
                status.working = False
        self.queue.enqueue(uid, self._jittered(self._back_off if failure else self._resync))

    def _jittered(self, seconds: float) -> float:
        return seconds * (1 + self._rng.random() * _JITTER)
