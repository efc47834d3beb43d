"""syncLoop: one loop over what is desired, what is seen, and what time it is.

    configCh         pods came, changed or went at a source
    plegCh           something happened to a container
    syncCh           a second has passed: pods that are due
    liveness, readiness, startup   a probe found something new
    housekeepingCh   clean up

Guarantees: one iteration at a time, fair to all channels; while the runtime is not
well nothing is taken from any. Handlers never block: the work is the pod workers'.

Source: syncLoop and syncLoopIteration in pkg/kubelet/kubelet.go, Kubernetes 1.33.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Protocol

import structlog

from kcm.api.core_v1 import Pod
from kcm.clock import Clock
from kcm.kubelet import HOUSEKEEPING_PERIOD
from kcm.kubelet.channels import Channels
from kcm.kubelet.config.podconfig import SourcesReady
from kcm.kubelet.loop.pleg import EventType, PodLifecycleEvent, is_sync_pod_worthy
from kcm.kubelet.loop.runtime_state import RuntimeState
from kcm.kubelet.pods.pod_manager import PodManager
from kcm.kubelet.prober.interface import Update
from kcm.kubelet.types import Operation, PodUpdate, described

log = structlog.get_logger("kcm.kubelet")

CONFIG, PLEG, SYNC, HOUSEKEEPING = "config", "pleg", "sync", "housekeeping"
LIVENESS, READINESS, STARTUP = "liveness", "readiness", "startup"

SYNC_PERIOD = 1.0  # seconds
HOUSEKEEPING_WARNING = 1.0  # seconds that a clean-up may take before the log says so
FIRST_WAIT, LONGEST_WAIT = 0.1, 5.0  # seconds, while the runtime is not well
MONITOR_THRESHOLD = 120.0  # seconds without an iteration until /healthz says so


class SyncHandler(Protocol):
    """What is done about what the channels bring."""

    def handle_pod_additions(self, pods: Sequence[Pod]) -> None: ...

    def handle_pod_updates(self, pods: Sequence[Pod]) -> None: ...

    def handle_pod_removes(self, pods: Sequence[Pod]) -> None: ...

    def handle_pod_reconcile(self, pods: Sequence[Pod]) -> None: ...

    def handle_pod_syncs(self, pods: Sequence[Pod]) -> None: ...

    def handle_pod_cleanups(self) -> None: ...

    def pods_to_sync(self) -> Sequence[Pod]: ...

    def clean_up_containers_in_pod(self, uid: str, container_id: str) -> None: ...


class SyncLoop:
    """See the module."""

    def __init__(
        self,
        channels: Channels,
        handler: SyncHandler,
        pods: PodManager,
        ready: SourcesReady,
        *,
        state: RuntimeState,
        clock: Clock,
        set_container: Callable[[str, str, str, bool], None] = lambda *_: None,
    ) -> None:
        """`set_container(uid, container id, "ready" or "started", value)` notes a probe's result
        in the pod's status."""
        self._channels = channels
        self._handler = handler
        self._pods = pods
        self._ready = ready
        self._state = state
        self._clock = clock
        self._set_container = set_container
        self._monitored = clock.monotonic()
        self._wait = FIRST_WAIT
        for name, capacity in ((CONFIG, 0), (PLEG, 1000), (SYNC, 1), (HOUSEKEEPING, 1)):
            channels.channel(name, capacity)
        self._take: dict[str, Callable[..., None]] = {
            CONFIG: self._config,
            PLEG: self._pleg,
            SYNC: self._sync,
            LIVENESS: self._liveness,
            READINESS: self._readiness,
            STARTUP: self._startup,
            HOUSEKEEPING: self._housekeeping,
        }

    def run(self, stop: threading.Event) -> None:
        """Loop until `stop`, or until the channels are closed."""
        log.info("Starting kubelet main sync loop")
        while not stop.is_set() and not self._channels.closed:
            faults = self._state.errors()
            if faults:
                log.warning("Skipping pod synchronization", faults=faults)
                self._clock.wait(stop, self._wait)
                self._wait = min(self._wait * 2, LONGEST_WAIT)
                continue
            self._wait = FIRST_WAIT
            self._monitored = self._clock.monotonic()
            self.iteration(0.5)
            self._monitored = self._clock.monotonic()

    def healthy(self) -> str:
        """ "" or since when the loop stands still."""
        elapsed = self._clock.monotonic() - self._monitored
        return f"sync loop has not run for {elapsed:.0f}s" if elapsed > MONITOR_THRESHOLD else ""

    def iteration(self, timeout: float) -> bool:
        """Take one thing from one channel; False when there was none for `timeout` seconds.

        What a handler raises is logged: the loop is what keeps everything else alive.
        """
        taken = self._channels.select(timeout)
        if taken is None:
            return False
        name, item = taken
        try:
            self._take[name](item)
        except Exception:  # one bad item must not end the loop: no other pod would be looked after
            log.exception("sync loop iteration failed", channel=name)
        return True

    def _config(self, update: PodUpdate) -> None:
        handler = self._handler
        if update.pods:
            log.info(f"SyncLoop {update.op}", source=update.source,
                     pods=[described(pod) for pod in update.pods])  # fmt: skip
        self._ready.add_source(update.source)
        match update.op:
            case Operation.ADD | Operation.RESTORE:
                # After a restart all pods come as if they were new.
                handler.handle_pod_additions(update.pods)
            case Operation.UPDATE | Operation.DELETE:
                # Deletion is graceful: at first the pod only has a deadline.
                handler.handle_pod_updates(update.pods)
            case Operation.REMOVE:
                handler.handle_pod_removes(update.pods)
            case Operation.RECONCILE:
                handler.handle_pod_reconcile(update.pods)
            case Operation.SET:
                log.error("Kubelet does not support snapshot update")

    def _pleg(self, event: PodLifecycleEvent) -> None:
        if is_sync_pod_worthy(event):
            pod = self._pods.by_uid(event.uid)
            if pod is not None:
                log.info(
                    "SyncLoop (PLEG): event for pod",
                    pod=described(pod),
                    change=event.type.value,
                    container=event.data,
                )
                self._handler.handle_pod_syncs([pod])
        if event.type is EventType.CONTAINER_DIED and event.data:
            self._handler.clean_up_containers_in_pod(event.uid, event.data)

    def _sync(self, _: object) -> None:
        pods = self._handler.pods_to_sync()
        if pods:
            self._handler.handle_pod_syncs(pods)

    def _liveness(self, update: Update) -> None:
        if not update.success:
            self._probed(update, LIVENESS, "unhealthy")

    def _readiness(self, update: Update) -> None:
        self._set_container(update.uid, update.container_id, "ready", update.success)
        self._probed(update, READINESS, "ready" if update.success else "not ready")

    def _startup(self, update: Update) -> None:
        self._set_container(update.uid, update.container_id, "started", update.success)
        self._probed(update, STARTUP, "started" if update.success else "unhealthy")

    def _probed(self, update: Update, probe: str, status: str) -> None:
        # The pod as it is now: the probe's own may be old.
        pod = self._pods.by_uid(update.uid)
        if pod is None:
            return
        log.info("SyncLoop (probe)", probe=probe, status=status, pod=described(pod))
        self._handler.handle_pod_syncs([pod])

    def _housekeeping(self, _: object) -> None:
        if not self._ready.all_ready():
            return  # what a source has not told yet is not gone
        started = self._clock.monotonic()
        self._handler.handle_pod_cleanups()
        took = self._clock.monotonic() - started
        if took > HOUSEKEEPING_WARNING:
            log.warning("Housekeeping took longer than expected", seconds=round(took, 2))


class Ticker:
    """Fills `syncCh` each second, and `housekeepingCh` when nobody else does."""

    def __init__(self, channels: Channels, clock: Clock) -> None:
        self._sync = channels.channel(SYNC, 1)
        self._housekeeping = channels.channel(HOUSEKEEPING, 1)
        self._clock = clock
        self._housekept = -HOUSEKEEPING_PERIOD

    def housekeeping(self) -> None:
        """It is time to clean up: called by the message that beat sends to every node."""
        self._housekept = self._clock.monotonic()
        self._housekeeping.offer(self._housekept)

    def run(self, stop: threading.Event) -> None:
        """Tick until `stop`. Beat's message counts while it comes at least every other time."""
        while not self._clock.wait(stop, SYNC_PERIOD):
            self._sync.offer(self._clock.monotonic())
            if self._clock.monotonic() - self._housekept >= 1.5 * HOUSEKEEPING_PERIOD:
                # The rhythm is the local one from now on, until a message comes.
                self._housekeeping.offer(self._clock.monotonic())
                self._housekept = self._clock.monotonic() - 0.5 * HOUSEKEEPING_PERIOD
