"""The sync loop: handles updates of pods, container events, probe results and ticks, one at a time.

    config        pods were added, changed or removed at a source
    pleg          a container or sandbox has changed
    sync          a second has passed: pods may be due
    liveness, readiness, startup   the result of a probe has changed
    housekeeping  it is time to clean up

Guarantees: it handles one item at a time and is fair to all channels. While the runtime is not
healthy, it takes nothing from any channel. Handlers never block, because pod workers do the work.

Source: syncLoop and syncLoopIteration in pkg/kubelet/kubelet.go, Kubernetes 1.33.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Protocol

import structlog

from kcm import errors
from kcm.api.core_v1 import Pod
from kcm.clock import Clock
from kcm.kubelet import HOUSEKEEPING_PERIOD
from kcm.kubelet.channels import Channels
from kcm.kubelet.config.podconfig import SourcesReady
from kcm.kubelet.loop.pleg import EventType, PodLifecycleEvent, RuntimeState, is_sync_pod_worthy
from kcm.kubelet.pods.pod_manager import PodManager
from kcm.kubelet.prober.state import ProbeUpdate, ProbeVerdict
from kcm.kubelet.status.manager import StatusManager
from kcm.kubelet.types import Operation, PodUpdate, format_pod

log = structlog.get_logger("kcm.kubelet")

CONFIG, PLEG, SYNC, HOUSEKEEPING = "config", "pleg", "sync", "housekeeping"
LIVENESS, READINESS, STARTUP = "liveness", "readiness", "startup"

SYNC_PERIOD = 1.0  # seconds
HOUSEKEEPING_WARNING = 1.0  # seconds after which a slow clean-up is logged
FIRST_WAIT, LONGEST_WAIT = 0.1, 5.0  # seconds, while the runtime is not healthy
ITERATION_TIMEOUT = 0.5  # seconds, and so how long stopping may take
MONITOR_THRESHOLD = 120.0  # seconds without an iteration until the loop is unhealthy


class SyncHandler(Protocol):
    """Handles what the sync loop takes from its channels. No method may block."""

    def handle_pod_additions(self, pods: Sequence[Pod]) -> None: ...

    def handle_pod_updates(self, pods: Sequence[Pod]) -> None: ...

    def handle_pod_removes(self, pods: Sequence[Pod]) -> None: ...

    def handle_pod_reconcile(self, pods: Sequence[Pod]) -> None: ...

    def handle_pod_syncs(self, pods: Sequence[Pod]) -> None: ...

    def handle_pod_cleanups(self) -> None: ...

    def get_pods_to_sync(self) -> Sequence[Pod]: ...

    def clean_up_containers_in_pod(self, uid: str, container_id: str) -> None: ...


class SyncLoop:
    """Takes items from the channels and handles them, until it is stopped."""

    def __init__(
        self,
        channels: Channels,
        handler: SyncHandler,
        *,
        pods: PodManager,
        statuses: StatusManager,
        sources: SourcesReady,
        runtime_state: RuntimeState,
        clock: Clock,
    ) -> None:
        self._channels = channels
        self._handler = handler
        self._pods = pods
        self._statuses = statuses
        self._sources = sources
        self._runtime_state = runtime_state
        self._clock = clock
        self._last_iteration = clock.monotonic()
        self._wait = FIRST_WAIT
        for name, capacity in ((CONFIG, 0), (PLEG, 1000), (SYNC, 1), (HOUSEKEEPING, 1)):
            channels.channel(name, capacity)
        self._handlers: dict[str, Callable[..., None]] = {
            CONFIG: self._handle_config,
            PLEG: self._handle_pleg,
            SYNC: self._handle_sync,
            LIVENESS: self._handle_liveness,
            READINESS: self._handle_readiness,
            STARTUP: self._handle_startup,
            HOUSEKEEPING: self._handle_housekeeping,
        }

    def run(self, stop: threading.Event) -> None:
        """Runs the loop until `stop` is set or the channels are closed."""
        log.info("Starting kubelet main sync loop")
        while not stop.is_set() and not self._channels.closed:
            problems = self._runtime_state.errors()
            if problems:
                log.warning("Skipping pod synchronization", problems=problems)
                self._clock.wait(stop, self._wait)
                self._wait = min(self._wait * 2, LONGEST_WAIT)
                continue
            self._wait = FIRST_WAIT
            self._last_iteration = self._clock.monotonic()
            self.iterate(ITERATION_TIMEOUT)
            self._last_iteration = self._clock.monotonic()

    def check_health(self) -> str:
        """Returns "" if the loop is healthy, else a message with the time since it last ran."""
        elapsed = self._clock.monotonic() - self._last_iteration
        return f"sync loop has not run for {elapsed:.0f}s" if elapsed > MONITOR_THRESHOLD else ""

    def iterate(self, timeout: float) -> bool:
        """Takes one item from one channel and handles it.

        Returns False if there was none for `timeout` seconds. If a handler raises, that is logged,
        and the loop goes on.
        """
        taken = self._channels.select(timeout)
        if taken is None:
            return False
        name, item = taken
        try:
            self._handlers[name](item)
        except errors.ContainerRuntimeError as error:  # it is away; the next item comes soon
            log.warning("sync loop iteration failed", channel=name, error=str(error))
        except Exception:  # one item must not stop the loop, which all other pods need
            log.exception("sync loop iteration failed", channel=name)
        return True

    def _handle_config(self, update: PodUpdate) -> None:
        handler = self._handler
        if update.pods:
            log.info(f"SyncLoop {update.op}", source=update.source,
                     pods=[format_pod(pod) for pod in update.pods])  # fmt: skip
        self._sources.add_source(update.source)
        match update.op:
            case Operation.ADD | Operation.RESTORE:
                # After a restart of the kubelet, all pods are added again.
                handler.handle_pod_additions(update.pods)
            case Operation.UPDATE | Operation.DELETE:
                # Deletion is graceful: DELETE means that the pod has a deletion timestamp.
                handler.handle_pod_updates(update.pods)
            case Operation.REMOVE:
                handler.handle_pod_removes(update.pods)
            case Operation.RECONCILE:
                handler.handle_pod_reconcile(update.pods)
            case Operation.SET:
                log.error("Kubelet does not support snapshot update")

    def _handle_pleg(self, event: PodLifecycleEvent) -> None:
        if is_sync_pod_worthy(event):
            pod = self._pods.by_uid(event.uid)
            if pod is not None:
                log.info(
                    "SyncLoop (PLEG): event for pod",
                    pod=format_pod(pod),
                    change=event.type.value,
                    container=event.data,
                )
                self._handler.handle_pod_syncs([pod])
        if event.type is EventType.CONTAINER_DIED and event.data:
            self._handler.clean_up_containers_in_pod(event.uid, event.data)

    def _handle_sync(self, _: object) -> None:
        pods = self._handler.get_pods_to_sync()
        if pods:
            self._handler.handle_pod_syncs(pods)

    def _handle_liveness(self, update: ProbeUpdate) -> None:
        if update.verdict is not ProbeVerdict.SUCCESS:
            self._sync_probed_pod(update, LIVENESS, "unhealthy")

    def _handle_readiness(self, update: ProbeUpdate) -> None:
        ready = update.verdict is ProbeVerdict.SUCCESS
        self._statuses.set_container_ready(update.pod_uid, update.container_id, ready)
        self._sync_probed_pod(update, READINESS, "ready" if ready else "not ready")

    def _handle_startup(self, update: ProbeUpdate) -> None:
        started = update.verdict is ProbeVerdict.SUCCESS
        self._statuses.set_container_started(update.pod_uid, update.container_id, started)
        self._sync_probed_pod(update, STARTUP, "started" if started else "unhealthy")

    def _sync_probed_pod(self, update: ProbeUpdate, probe: str, status: str) -> None:
        # The probe's own copy of the pod may be old.
        pod = self._pods.by_uid(update.pod_uid)
        if pod is None:
            return
        log.info("SyncLoop (probe)", probe=probe, status=status, pod=format_pod(pod))
        self._handler.handle_pod_syncs([pod])

    def _handle_housekeeping(self, _: object) -> None:
        if not self._sources.all_ready():
            return  # pods that a source has not listed yet are not gone
        started = self._clock.monotonic()
        self._handler.handle_pod_cleanups()
        elapsed = self._clock.monotonic() - started
        if elapsed > HOUSEKEEPING_WARNING:
            log.warning("Housekeeping took longer than expected", seconds=round(elapsed, 2))


class Ticker:
    """Puts an item into the `sync` channel each second, and `housekeeping` if beat does not."""

    def __init__(self, channels: Channels, clock: Clock) -> None:
        self._sync = channels.channel(SYNC, 1)
        self._housekeeping = channels.channel(HOUSEKEEPING, 1)
        self._clock = clock
        self._last_housekeeping = -HOUSEKEEPING_PERIOD

    def request_housekeeping(self) -> None:
        """Makes the loop clean up. It is called for each of beat's messages."""
        self._last_housekeeping = self._clock.monotonic()
        self._housekeeping.offer(self._last_housekeeping)

    def run(self, stop: threading.Event) -> None:
        """Runs until `stop` is set.

        It requests housekeeping only if no message from beat has come for 1.5 times
        HOUSEKEEPING_PERIOD.
        """
        while not self._clock.wait(stop, SYNC_PERIOD):
            self._sync.offer(self._clock.monotonic())
            if self._clock.monotonic() - self._last_housekeeping >= 1.5 * HOUSEKEEPING_PERIOD:
                # The next request is due in one HOUSEKEEPING_PERIOD, unless a message comes.
                self._housekeeping.offer(self._clock.monotonic())
                self._last_housekeeping = self._clock.monotonic() - 0.5 * HOUSEKEEPING_PERIOD
