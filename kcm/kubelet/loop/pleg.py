"""PLEG, the pod lifecycle event generator: what changed in the runtime since the last look.

Guarantees: the cache holds a pod's new state before its events come; a pod that
could not be looked at is looked at again in the next round.

Source: pkg/kubelet/pleg/{pleg,generic}.go, Kubernetes 1.33.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

import structlog

from kcm import errors
from kcm.clock import Clock
from kcm.kubelet.channels import Channel
from kcm.kubelet.cri import ContainerState
from kcm.kubelet.kuberuntime.manager import RuntimeManager
from kcm.kubelet.kuberuntime.view import PodView, RuntimePod
from kcm.kubelet.metrics import Metrics
from kcm.kubelet.pod_workers.pod_cache import PodCache

log = structlog.get_logger("kcm.kubelet")

RELIST_PERIOD = 1.0  # seconds
RELIST_THRESHOLD = 180.0  # seconds without a look until it counts as sick
CAPACITY = 1000  # events that wait


class EventType(StrEnum):
    """What became of a container."""

    CONTAINER_STARTED = "ContainerStarted"
    CONTAINER_DIED = "ContainerDied"
    CONTAINER_REMOVED = "ContainerRemoved"
    CONTAINER_CHANGED = "ContainerChanged"


@dataclass(frozen=True)
class PodLifecycleEvent:
    """Something happened to a pod; `data` is the container's id."""

    uid: str
    type: EventType
    data: str = ""


def is_sync_pod_worthy(event: PodLifecycleEvent) -> bool:
    """Whether a pod should be synced for it: all but removals, which the kubelet did itself."""
    return event.type is not EventType.CONTAINER_REMOVED


_NON_EXISTENT = "non-existent"


def _state(pod: RuntimePod | None, container_id: str) -> str:
    if pod is not None:
        for container in pod.containers:
            if container.id == container_id:
                return container.state.value
        for sandbox in pod.sandboxes:
            if sandbox.id == container_id:
                ready = sandbox.state.value == "READY"
                return (ContainerState.RUNNING if ready else ContainerState.EXITED).value
    return _NON_EXISTENT


def events_between(
    uid: str, old: RuntimePod | None, new: RuntimePod | None
) -> list[PodLifecycleEvent]:
    """What happened to a pod between two looks."""
    ids: dict[str, None] = {}
    for pod in (old, new):
        if pod is not None:
            ids.update(dict.fromkeys(found.id for found in pod.containers))
            ids.update(dict.fromkeys(found.id for found in pod.sandboxes))
    events: list[PodLifecycleEvent] = []
    for container_id in ids:
        events += _events_of(
            uid, container_id, _state(old, container_id), _state(new, container_id)
        )
    return events


def _events_of(uid: str, container_id: str, old: str, new: str) -> list[PodLifecycleEvent]:
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
    # Gone: told as a death first, unless that was told before.
    removed = event(EventType.CONTAINER_REMOVED)
    return [removed] if old == "EXITED" else [event(EventType.CONTAINER_DIED), removed]


class GenericPLEG:
    """Looks at the runtime once a second."""

    def __init__(
        self,
        manager: RuntimeManager,
        cache: PodCache,
        channel: Channel,
        clock: Clock,
        metrics: Metrics | None = None,
    ) -> None:
        self._manager = manager
        self._cache = cache
        self._channel = channel
        self._clock = clock
        self._metrics = metrics or Metrics()
        self._records: dict[str, RuntimePod] = {}
        self._again: set[str] = set()  # pods that could not be looked at
        self._wake = threading.Event()
        self.relisted_at = clock.monotonic()  # the last look that succeeded
        self.discarded = 0  # events that found the channel full

    def run(self, stop: threading.Event) -> None:
        """Look until `stop`."""
        while not stop.is_set():
            self.relist()
            self._clock.wait(self._wake, RELIST_PERIOD)
            self._wake.clear()

    def request(self) -> None:
        """Look now rather than at the end of the second."""
        self._wake.set()

    def healthy(self) -> str:
        """ "" or why the runtime is not looked at."""
        elapsed = self._clock.monotonic() - self.relisted_at
        if elapsed > RELIST_THRESHOLD:
            return (
                f"pleg was last seen active {elapsed:.0f}s ago; threshold is {RELIST_THRESHOLD:g}s"
            )
        return ""

    def relist(self) -> None:
        """One look."""
        at = self._clock.monotonic()
        try:
            pods: Mapping[str, RuntimePod] = self._manager.pods()
        except (errors.KcmError, OSError) as error:
            log.warning("GenericPLEG: the runtime cannot be listed", error=str(error))
            return
        self.relisted_at = at
        failed: set[str] = set()
        for uid in {*self._records, *pods}:
            self._look_at(uid, pods.get(uid), at, failed)
        self._again = failed
        self._cache.update_time(at)
        self._metrics.relist(self._clock.monotonic() - at)

    def _look_at(self, uid: str, pod: RuntimePod | None, at: float, failed: set[str]) -> None:
        events = events_between(uid, self._records.get(uid), pod)
        if (events or uid in self._again) and not self._update_cache(uid, pod, at):
            failed.add(uid)
            return
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

    def _update_cache(self, uid: str, pod: RuntimePod | None, at: float) -> bool:
        if pod is None:
            self._cache.delete(uid)
            return True
        view, failure = PodView(uid), None
        try:
            view = self._manager.view(pod)
        except errors.ContainerRuntimeError as error:
            failure = error
        self._cache.set(uid, view, failure, at)
        return failure is None
