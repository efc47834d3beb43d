"""PLEG, the pod lifecycle event generator: compares the runtime's pods with what they were before.

It lists them once a second, and as soon as the runtime says that something has changed.

Guarantees: the cache has a pod's new state before its events are sent. A pod whose inspection
failed is inspected again in the next relist.

Source: pkg/kubelet/pleg/{pleg,generic}.go, Kubernetes 1.33.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum

import structlog

from kcm import errors
from kcm.clock import Clock
from kcm.kubelet.channels import Channel
from kcm.kubelet.cri import Runtime, RuntimeContainerState
from kcm.kubelet.kuberuntime.manager import RuntimeManager
from kcm.kubelet.kuberuntime.view import PodView, RuntimePod
from kcm.kubelet.metrics import KubeletMetrics
from kcm.kubelet.pod_workers.pod_cache import PodCache

log = structlog.get_logger("kcm.kubelet")

RELIST_PERIOD = 1.0  # seconds
REST = 3  # times as long as a relist took, it waits at least, however often it is asked
RELIST_THRESHOLD = 180.0  # seconds without a relist until PLEG is unhealthy
CHANNEL_CAPACITY = 1000  # events


class EventType(StrEnum):
    """What happened to a container."""

    CONTAINER_STARTED = "ContainerStarted"
    CONTAINER_DIED = "ContainerDied"
    CONTAINER_REMOVED = "ContainerRemoved"
    CONTAINER_CHANGED = "ContainerChanged"


@dataclass(frozen=True)
class PodLifecycleEvent:
    """An event of a pod; `data` is the id of the container or sandbox."""

    uid: str
    type: EventType
    data: str = ""


def is_sync_pod_worthy(event: PodLifecycleEvent) -> bool:
    """Reports whether the event's pod should be synced.

    Removals need no sync, since the kubelet itself has removed the containers.
    """
    return event.type is not EventType.CONTAINER_REMOVED


_NON_EXISTENT = "non-existent"


def _container_state(pod: RuntimePod | None, container_id: str) -> str:
    if pod is not None:
        for container in pod.containers:
            if container.id == container_id:
                return container.state.value
        for sandbox in pod.sandboxes:
            if sandbox.id == container_id:
                ready = sandbox.state.value == "READY"
                return (
                    RuntimeContainerState.RUNNING if ready else RuntimeContainerState.EXITED
                ).value
    return _NON_EXISTENT


def compute_events(
    uid: str, old: RuntimePod | None, new: RuntimePod | None
) -> list[PodLifecycleEvent]:
    """Returns the events of a pod between two relists. None is a pod that does not exist."""
    ids: dict[str, None] = {}
    for pod in (old, new):
        if pod is not None:
            ids.update(dict.fromkeys(container.id for container in pod.containers))
            ids.update(dict.fromkeys(sandbox.id for sandbox in pod.sandboxes))
    events: list[PodLifecycleEvent] = []
    for container_id in ids:
        events += _compute_container_events(
            uid,
            container_id,
            _container_state(old, container_id),
            _container_state(new, container_id),
        )
    return events


def _compute_container_events(
    uid: str, container_id: str, old: str, new: str
) -> list[PodLifecycleEvent]:
    def event(kind: EventType) -> PodLifecycleEvent:
        return PodLifecycleEvent(uid, kind, container_id)

    if old == new:
        return []
    match new:
        case "RUNNING":
            return [event(EventType.CONTAINER_STARTED)]
        case "EXITED":
            return [event(EventType.CONTAINER_DIED)]
        case "CREATED" | "UNKNOWN":
            return [event(EventType.CONTAINER_CHANGED)]
    # The container is gone: it died before, unless that was reported already.
    removed = event(EventType.CONTAINER_REMOVED)
    return [removed] if old == "EXITED" else [event(EventType.CONTAINER_DIED), removed]


class GenericPLEG:
    """Lists the runtime's pods once a second, and sends events about changes to a channel."""

    def __init__(
        self,
        runtime_manager: RuntimeManager,
        *,
        cache: PodCache,
        channel: Channel,
        clock: Clock,
        metrics: KubeletMetrics,
    ) -> None:
        self._runtime_manager = runtime_manager
        self._cache = cache
        self._channel = channel
        self._clock = clock
        self._metrics = metrics
        self._records: dict[str, RuntimePod] = {}
        self._failed: set[str] = set()  # uids of pods whose inspection failed or was requested
        self._lock = threading.Lock()
        self._to_inspect: set[str] = set()  # uids of pods that shall be inspected
        self._wake = threading.Event()
        self.relisted_at = clock.monotonic()  # the last relist that succeeded
        self.discarded = 0  # events that did not fit into the channel

    def run(self, stop: threading.Event) -> None:
        """Relists each RELIST_PERIOD seconds, and when that is requested, until `stop` is set.

        Many requests share a relist, so that these take at most a quarter of the time.
        """
        while not stop.is_set():
            began = self._clock.monotonic()
            self.relist()
            rest = min(REST * (self._clock.monotonic() - began), RELIST_PERIOD)
            self._clock.wait(stop, rest)
            self._clock.wait(self._wake, RELIST_PERIOD - rest)
            self._wake.clear()

    def request_relist(self, uid: str = "") -> None:
        """Makes PLEG relist at once.

        The pod with that uid is inspected even if nobody can see a change in the list, as of its
        containers' resources.
        """
        if uid:
            with self._lock:
                self._to_inspect.add(uid)
        self._wake.set()

    def check_health(self) -> str:
        """Returns "" if PLEG is healthy, else a message with the time since the last relist."""
        elapsed = self._clock.monotonic() - self.relisted_at
        if elapsed > RELIST_THRESHOLD:
            return (
                f"pleg was last seen active {elapsed:.0f}s ago; threshold is {RELIST_THRESHOLD:g}s"
            )
        return ""

    def relist(self) -> None:
        """Lists all of the runtime's pods once, and sends events about changes."""
        at = self._clock.monotonic()
        with self._lock:
            self._failed |= self._to_inspect
            self._to_inspect.clear()
        try:
            pods: Mapping[str, RuntimePod] = self._runtime_manager.pods()
        except (errors.KcmError, OSError) as error:
            log.warning("GenericPLEG: the runtime cannot be listed", error=str(error))
            return
        self.relisted_at = at
        failed: set[str] = set()
        for uid in {*self._records, *pods}:
            if not self._update_pod(uid, pods.get(uid), at):
                failed.add(uid)
        self._failed = failed
        self._cache.update_time(at)
        self._metrics.observe_relist(self._clock.monotonic() - at)

    def _update_pod(self, uid: str, pod: RuntimePod | None, at: float) -> bool:
        """Sends the events of one pod. Returns False if its inspection failed."""
        events = compute_events(uid, self._records.get(uid), pod)
        if (events or uid in self._failed) and not self._update_cache(uid, pod, at):
            return False
        if pod is None:
            self._records.pop(uid, None)
        else:
            self._records[uid] = pod
        for event in events:
            if event.type is EventType.CONTAINER_CHANGED:
                continue
            if not self._channel.offer(event):
                self.discarded += 1
                log.error("event channel is full, discard this relist() cycle event")
        return True

    def _update_cache(self, uid: str, pod: RuntimePod | None, at: float) -> bool:
        if pod is None:
            self._cache.delete(uid)
            return True
        view, failure = PodView(uid), None
        try:
            view = self._runtime_manager.view(pod)
        except errors.ContainerRuntimeError as error:
            failure = error
        self._cache.set(uid, view, failure, at)
        return failure is None


# --- The health of the container runtime, and of PLEG, which watches it.
#
# Source: pkg/kubelet/runtime.go and updateRuntimeUp in pkg/kubelet/kubelet.go, Kubernetes 1.33.


UPDATE_INTERVAL = 5.0  # seconds
UNHEALTHY_THRESHOLD = 30.0  # seconds without being ready until the runtime counts as down


class RuntimeState:
    """The runtime's health. Thread-safe."""

    def __init__(
        self,
        runtime: Runtime,
        clock: Clock,
        *,
        health_checks: Mapping[str, Callable[[], str]] | None = None,
    ) -> None:
        """`health_checks` are further checks by name. Each returns "", or what is wrong."""
        self._runtime = runtime
        self._clock = clock
        self._health_checks = dict(health_checks or {})
        self._last_ready: float | None = None
        self._problems: list[str] = []  # what the runtime said last

    def update(self) -> None:
        """Requests the runtime's status and remembers it. One that does not answer says nothing."""
        try:
            status = self._runtime.status()
        except errors.KcmError as error:
            log.error("Container runtime sanity check failed", error=str(error))
            return
        self._problems = []
        if status.network_fault:
            text = f"container runtime network not ready: {status.network_fault}"
            self._problems.append(text)
        if status.ready:
            self._last_ready = self._clock.monotonic()
        else:
            self._problems.append(f"container runtime not ready: {status.message}")

    def run(self, stop: threading.Event) -> None:
        """Updates the status every UPDATE_INTERVAL seconds until `stop` is set."""
        while not stop.is_set():
            self.update()
            self._clock.wait(stop, UPDATE_INTERVAL)

    def errors(self) -> list[str]:
        """Returns what is wrong with the runtime, as messages; [] if it is healthy."""
        problems = []
        if self._last_ready is None:
            problems.append("container runtime status check may not have completed yet")
        elif self._clock.monotonic() - self._last_ready > UNHEALTHY_THRESHOLD:
            problems.append("container runtime is down")
        for name, check in self._health_checks.items():
            if problem := check():
                problems.append(f"{name} is not healthy: {problem}")
        return [*problems, *self._problems]
