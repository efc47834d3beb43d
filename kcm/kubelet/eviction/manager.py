"""The eviction manager: looks every 10 s, evicts one pod at a time, tells of pressure.

Guarantees: critical and static pods stay; the next pod goes only when the last one has
ended, or after 30 s. Source: pkg/kubelet/eviction/eviction_manager.go, Kubernetes 1.33.
Departure: dead containers and images are not removed first.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime

import structlog

from kcm import errors
from kcm.api.core_v1 import NodeCondition, NodeStatus, Pod, Taint
from kcm.clock import Clock
from kcm.helpers.node_reports import condition
from kcm.helpers.podresources import BEST_EFFORT, qos_class
from kcm.helpers.tolerations import tolerates
from kcm.kubelet.admission import Refusal
from kcm.kubelet.eviction.ranking import Uses, by_urgency, message_of, over_limit, ranked
from kcm.kubelet.eviction.state import Pressure, step
from kcm.kubelet.eviction.thresholds import RESOURCES, Observations, Threshold, observe, on_one_disk
from kcm.kubelet.pod_workers.terminator import Ending, Terminator
from kcm.kubelet.recorder import Recorder
from kcm.kubelet.stats.provider import StatsProvider
from kcm.kubelet.types import is_critical

log = structlog.get_logger("kcm.kubelet")

EVERY = 10.0  # seconds
CLEAN_UP = 30.0  # seconds that the end of a pod is waited for
REASON = "Evicted"
_AT_ONCE = 1  # seconds of grace, where a hard threshold is met
_WORDS = {
    "MemoryPressure": (
        ("KubeletHasInsufficientMemory", "kubelet has insufficient memory available"),
        ("KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
    ),
    "DiskPressure": (
        ("KubeletHasDiskPressure", "kubelet has disk pressure"),
        ("KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
    ),
    "PIDPressure": (
        ("KubeletHasInsufficientPID", "kubelet has insufficient PID available"),
        ("KubeletHasSufficientPID", "kubelet has sufficient PID available"),
    ),
}
_MEMORY_TAINT = Taint(key="node.kubernetes.io/memory-pressure", effect="NoSchedule")


@dataclass(frozen=True)
class EvictionOptions:
    """Times are seconds."""

    thresholds: Sequence[Threshold] = field(default=())
    transition: float = 300.0  # that a pressure is reported after it was last seen
    most_grace: int = 0  # of pods, where a soft threshold is met


class EvictionManager:
    """`run` does it in one thread; the rest may be asked by any."""

    def __init__(
        self,
        options: EvictionOptions,
        stats: StatsProvider,
        active: Callable[[], Sequence[Pod]],
        terminator: Terminator,
        *,
        recorder: Recorder,
        clock: Clock,
        changed: Callable[[], None] = lambda: None,
        count: Callable[[str], None] = lambda _: None,
    ) -> None:
        """`changed` is called when the node has to report; `count` with an eviction's signal."""
        self._options = options
        self._thresholds = on_one_disk(options.thresholds)
        for one in set(options.thresholds).difference(self._thresholds):
            log.warning("Eviction manager: a threshold of containerfs is ignored, nodefs' counts",
                        signal=one.signal.value)  # fmt: skip
        self._stats = stats
        self._active = active
        self._terminator = terminator
        self._recorder = recorder
        self._clock = clock
        self._changed = changed
        self._count = count
        self._pressure = Pressure()

    @property
    def pressures(self) -> frozenset[str]:
        """The conditions that hold."""
        return self._pressure.conditions

    def run(self, stop: threading.Event) -> None:
        """Look until `stop`."""
        while not stop.is_set():
            try:
                evicted = self.synchronize()
            except errors.KcmError as error:
                log.warning("Eviction manager: failed to look", error=error.message)
                evicted = False
            if not evicted:
                self._clock.wait(stop, EVERY)

    def synchronize(self) -> bool:
        """One look; whether a pod was evicted. Raises ContainerRuntimeError."""
        found = self._stats.summary(fresh=0.0)  # what was freed by the last eviction must show
        observed = observe(found.machine)
        uses = {pod.uid: pod for pod in found.pods}
        before = self._pressure.conditions
        options = self._options
        self._pressure = step(
            self._pressure,
            self._thresholds,
            observed,
            self._clock.monotonic(),
            options.transition,
        )
        if self._pressure.conditions != before:
            self._changed()
        pods = self._active()
        if self._evict_greedy(pods, uses):
            return True
        acting = by_urgency(self._pressure.acting)
        return bool(acting) and self._reclaim(acting[0], pods, uses, observed)

    def _evict_greedy(self, pods: Sequence[Pod], uses: Uses) -> bool:
        """Pods that write more than they may go, whatever is left."""
        for pod in pods:
            use = uses.get(pod.uid or "")
            why = over_limit(pod, use) if use is not None else ""
            if why and self._evict(pod, why, _AT_ONCE):
                self._count("ephemeralpodfs.limit" if "total limit" in why else "emptydirfs.limit")
                return True
        return False

    def _reclaim(
        self, threshold: Threshold, pods: Sequence[Pod], uses: Uses, observed: Observations
    ) -> bool:
        resource = RESOURCES[threshold.signal]
        self._recorder.of_node(
            "Warning", "EvictionThresholdMet", f"Attempting to reclaim {resource}"
        )
        if not pods:
            log.warning("Eviction manager: nothing runs that could be evicted", resource=resource)
        for pod in ranked(threshold.signal, pods, uses):
            message = message_of(threshold, pod, uses.get(pod.uid or ""), observed)
            if self._evict(pod, message, self._grace(threshold, pod)):
                self._count(threshold.signal.value)
                return True
        return False

    def _grace(self, threshold: Threshold, pod: Pod) -> int:
        if threshold.hard:
            return _AT_ONCE
        own = pod.spec.termination_grace_period_seconds
        most = self._options.most_grace
        return max(most if own is None else min(own, most), _AT_ONCE)

    def _evict(self, pod: Pod, message: str, grace: int) -> bool:
        if is_critical(pod):
            log.info("Eviction manager: cannot evict a critical pod", pod=pod.key)
            return False
        self._recorder.of_pod(pod, "Warning", REASON, message)
        ending = Ending(REASON, message, grace, evict=True)
        if not self._terminator.end_and_wait(pod, ending, CLEAN_UP):
            log.warning("Eviction manager: timed out waiting for pod's end", pod=pod.key)
        return True

    # --- what others ask

    def admit(self, pod: Pod, _: Sequence[Pod]) -> Refusal | None:
        """Under pressure no pods are taken but critical ones, and ones that asked for memory
        where nothing but memory is short. Pods that run already are found again when the
        kubelet starts, and stay: unlike upstream's, a restart evicts nobody."""
        pressures = self.pressures
        if not pressures or is_critical(pod) or pod.status.phase == "Running":
            return None
        if pressures == {"MemoryPressure"} and (
            qos_class(pod) != BEST_EFFORT or _tolerates_memory_pressure(pod)
        ):
            return None
        return Refusal(REASON, f"The node had condition: [{' '.join(sorted(pressures))}]. ")

    def conditions(self, before: NodeStatus, now: datetime) -> list[NodeCondition]:
        """What the node reports of it."""
        found = []
        for kind, (pressed, relaxed) in _WORDS.items():
            holds = kind in self.pressures
            found.append(condition(kind, holds, pressed if holds else relaxed, before, now))
        return found


def _tolerates_memory_pressure(pod: Pod) -> bool:
    return any(tolerates(one, _MEMORY_TAINT) for one in pod.spec.tolerations or ())
