"""The eviction manager: evicts pods when the node runs short of a resource, and reports pressure.

Guarantees: critical and static pods are not evicted. One pod is evicted at a time, and the next one
only when it has ended or 30 s have passed.

Source: pkg/kubelet/eviction/eviction_manager.go, Kubernetes 1.33. Departure: dead containers and
images are not removed first.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

import structlog

from kcm import errors
from kcm.api.core_v1 import NodeCondition, NodeStatus, Pod, Taint
from kcm.api.pods.qos import BEST_EFFORT, qos_class
from kcm.clock import Clock
from kcm.helpers.node_reports import pressure_conditions
from kcm.helpers.tolerations import is_tolerated
from kcm.kubelet.admission import Rejection
from kcm.kubelet.eviction.ranking import (
    StatsByUid,
    build_eviction_message,
    find_storage_excess,
    rank_pods,
    sort_by_urgency,
)
from kcm.kubelet.eviction.thresholds import (
    RESOURCES,
    EvictionConfig,
    Observations,
    Threshold,
    drop_containerfs,
    find_met,
    observe,
)
from kcm.kubelet.pod_workers.terminator import PodTermination, Terminator
from kcm.kubelet.recorder import KubeletEventRecorder
from kcm.kubelet.stats.provider import StatsProvider
from kcm.kubelet.types import is_critical_pod

log = structlog.get_logger("kcm.kubelet")

MONITORING_INTERVAL = 10.0  # seconds
POD_CLEANUP_TIMEOUT = 30.0  # seconds to wait until an evicted pod has ended
REASON = "Evicted"
_IMMEDIATE_GRACE = 1  # seconds, for evictions by a hard threshold
_MEMORY_TAINT = Taint(key="node.kubernetes.io/memory-pressure", effect="NoSchedule")


class EvictionManager:
    """Evicts pods under node pressure. `run` takes a thread; other methods are thread-safe."""

    def __init__(
        self,
        config: EvictionConfig,
        *,
        stats: StatsProvider,
        active_pods: Callable[[], Sequence[Pod]],
        terminator: Terminator,
        recorder: KubeletEventRecorder,
        clock: Clock,
        request_node_report: Callable[[], None] = lambda: None,
        count_eviction: Callable[[str], None] = lambda _: None,
    ) -> None:
        """`request_node_report` is called when a pressure begins or ends.

        `count_eviction` is called with the signal of each eviction.
        """
        self._config = config
        self._thresholds = drop_containerfs(config.thresholds)
        for ignored in set(config.thresholds).difference(self._thresholds):
            log.warning("Eviction manager: ignoring a threshold of containerfs, which is nodefs",
                        signal=ignored.signal.value)  # fmt: skip
        self._stats = stats
        self._active_pods = active_pods
        self._terminator = terminator
        self._recorder = recorder
        self._clock = clock
        self._request_node_report = request_node_report
        self._count_eviction = count_eviction
        self._state = PressureState()

    @property
    def pressures(self) -> frozenset[str]:
        """The types of the node's pressure conditions that are True."""
        return self._state.conditions

    def run(self, stop: threading.Event) -> None:
        """Evicts pods while eviction signals are past their thresholds, until `stop` is set.

        After a check that evicts nothing, the next one comes in MONITORING_INTERVAL seconds.
        """
        while not stop.is_set():
            try:
                evicted = self.synchronize()
            except errors.KcmError as error:
                log.warning("Eviction manager: failed to get the stats", error=error.message)
                evicted = False
            if not evicted:
                self._clock.wait(stop, MONITORING_INTERVAL)

    def synchronize(self) -> bool:
        """Checks the node once, and evicts at most one pod. Returns whether it evicted one.

        Raises ContainerRuntimeError if the runtime does not return its stats.
        """
        summary = self._stats.summary(max_age=0.0)  # must show what the last eviction has freed
        observed = observe(summary.machine)
        stats = {pod.uid: pod for pod in summary.pods}
        previous = self._state.conditions
        self._state = advance_pressure(
            self._state,
            self._thresholds,
            observed,
            now=self._clock.monotonic(),
            transition_period=self._config.pressure_transition_period,
        )
        if self._state.conditions != previous:
            self._request_node_report()
        pods = self._active_pods()
        if self._evict_over_limit(pods, stats):
            return True
        acting = sort_by_urgency(self._state.acting)
        return bool(acting) and self._reclaim(acting[0], pods, stats, observed)

    def _evict_over_limit(self, pods: Sequence[Pod], stats: StatsByUid) -> bool:
        """Evicts the first pod that exceeds a limit of local storage; returns whether it did."""
        for pod in pods:
            pod_stats = stats.get(pod.uid or "")
            excess = find_storage_excess(pod, pod_stats) if pod_stats is not None else None
            if excess is not None and self._evict(pod, excess.message, _IMMEDIATE_GRACE):
                self._count_eviction(excess.signal)
                return True
        return False

    def _reclaim(
        self, threshold: Threshold, pods: Sequence[Pod], stats: StatsByUid, observed: Observations
    ) -> bool:
        resource = RESOURCES[threshold.signal]
        self._recorder.record_node_event(
            "Warning", "EvictionThresholdMet", f"Attempting to reclaim {resource}"
        )
        if not pods:
            log.warning("Eviction manager: no pods are active to evict", resource=resource)
        for pod in rank_pods(threshold.signal, pods, stats):
            pod_stats = stats.get(pod.uid or "")
            message = build_eviction_message(threshold, pod, pod_stats, observed)
            if self._evict(pod, message, self._grace_period(threshold, pod)):
                self._count_eviction(threshold.signal.value)
                return True
        return False

    def _grace_period(self, threshold: Threshold, pod: Pod) -> int:
        if threshold.hard:
            return _IMMEDIATE_GRACE
        own = pod.spec.termination_grace_period_seconds
        longest = self._config.max_pod_grace_period
        return max(longest if own is None else min(own, longest), _IMMEDIATE_GRACE)

    def _evict(self, pod: Pod, message: str, grace: int) -> bool:
        """Evicts the pod and waits until it has ended. Returns False if the pod is critical."""
        if is_critical_pod(pod):
            log.info("Eviction manager: cannot evict a critical pod", pod=pod.key)
            return False
        self._recorder.record_pod_event(pod, "Warning", REASON, message)
        termination = PodTermination(REASON, message, grace, evict=True)
        if not self._terminator.terminate_and_wait(pod, termination, POD_CLEANUP_TIMEOUT):
            log.warning("Eviction manager: timed out waiting for pod's end", pod=pod.key)
        return True

    def admit(self, pod: Pod, _: Sequence[Pod]) -> Rejection | None:
        """Rejects pods that would make a pressure of the node worse.

        Critical pods are admitted. If memory alone is short, so are pods that are not BestEffort or
        that tolerate the memory pressure taint. Departure: pods that ran before a restart of the
        kubelet are admitted again, so that a restart evicts none.
        """
        pressures = self.pressures
        if not pressures or is_critical_pod(pod) or pod.status.phase == "Running":
            return None
        if pressures == {"MemoryPressure"} and (
            qos_class(pod) != BEST_EFFORT or is_tolerated(_MEMORY_TAINT, pod.spec.tolerations or ())
        ):
            return None
        return Rejection(REASON, f"The node had condition: [{' '.join(sorted(pressures))}]. ")

    def build_conditions(self, previous: NodeStatus, now: datetime) -> list[NodeCondition]:
        """Returns the node's pressure conditions. `previous` is the status last reported."""
        return pressure_conditions(self.pressures, previous, now)


# --- The change of the node's pressures over time, from one observation to the next: a pure
# function.
#
# Source: synchronize in pkg/kubelet/eviction/eviction_manager.go, Kubernetes 1.33.


@dataclass(frozen=True)
class PressureState:
    """What the manager remembers between two checks. Times are seconds of a monotonic clock."""

    first_met: Mapping[Threshold, float] = field(default_factory=dict)
    last_seen: Mapping[str, float] = field(default_factory=dict)  # by condition
    acting: Sequence[Threshold] = ()  # those met for their whole grace periods
    conditions: frozenset[str] = frozenset()  # the types that the node reports


def advance_pressure(
    state: PressureState,
    thresholds: Sequence[Threshold],
    observed: Observations,
    *,
    now: float,
    transition_period: float,
) -> PressureState:
    """Returns the state after one more observation.

    A condition is reported for `transition_period` seconds after one of its thresholds was last
    met.
    """
    met = find_met(thresholds, observed)
    unresolved = find_met(state.acting, observed, enforce_min_reclaim=True)
    met += [threshold for threshold in unresolved if threshold not in met]
    first_met = {threshold: state.first_met.get(threshold, now) for threshold in met}
    last_seen = {**state.last_seen, **{threshold.signal.condition: now for threshold in met}}
    return PressureState(
        first_met=first_met,
        last_seen=last_seen,
        acting=[
            threshold
            for threshold, since in first_met.items()
            if now - since >= threshold.grace_period
        ],
        conditions=frozenset(
            condition for condition, at in last_seen.items() if now - at < transition_period
        ),
    )
