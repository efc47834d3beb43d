"""The scheduling queue: which pods are tried, in which order, and when the next ones are due.

The pods' objects say which pods wait. The last attempt of each (how many there were, when it was,
which plugins rejected nodes) is a short text in the controller memory, so that the next pass can
run on any worker. Upstream's queues are computed in each pass: active, backoff, unschedulable and
gated. Departure: a pod in back-off is not tried early when nothing else waits
(SchedulerPopFromBackoffQ), unless it is nominated.

Source: pkg/scheduler/backend/queue/scheduling_queue.go, Kubernetes 1.33.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from kcm.controllers.scheduler.cluster_events import (
    EVENTS_TO_REGISTER,
    ClusterEvent,
    ClusterEventKind,
)
from kcm.controllers.scheduler.nodeinfo import PodInfo
from kcm.controllers.scheduler.options import SchedulerOptions
from kcm.controllers.scheduler.plugins.local import LocalFilters
from kcm.controllers.scheduler.snapshot import Snapshot
from kcm.controllers.scheduler.template import signature

QUEUES = ("active", "backoff", "unschedulable", "gated")


@dataclass(frozen=True)
class LastAttempt:
    """The last attempt to schedule a pod, which failed."""

    attempts: int
    since: float  # Unix time of the last attempt
    position: int  # of the snapshot that the attempt used
    checksum: int  # of the pod's requirements
    plugins: tuple[str, ...]  # the plugins that rejected nodes; () after an error

    def __str__(self) -> str:
        plugins = ",".join(self.plugins)
        return f"{self.attempts} {self.since:.3f} {self.position} {self.checksum} {plugins}"

    @classmethod
    def parse(cls, text: str) -> LastAttempt | None:
        """Parses a text of `str`; returns None for any other text."""
        parts = text.split(" ")
        try:
            attempts, since, position, checksum, plugins = parts
            names = tuple(name for name in plugins.split(",") if name)
            return cls(int(attempts), float(since), int(position), int(checksum), names)
        except ValueError:
            return None


def checksum(info: PodInfo) -> int:
    """Returns a number that changes when the pod's requirements change."""
    return zlib.crc32(repr(signature(info)).encode())


@dataclass
class Waiting:
    """The pods that wait for a scheduler, at one moment."""

    ready: list[PodInfo] = field(default_factory=list)  # in the order in which they are tried
    last_attempts: dict[str, LastAttempt] = field(default_factory=dict)  # by uid
    # the number of pods by queue
    counts: dict[str, int] = field(default_factory=lambda: dict.fromkeys(QUEUES, 0))
    next_due: float | None = None  # seconds until another pod is ready


# Events that are about no single node.
_WITHOUT_NODE = (
    ClusterEventKind.NAMESPACE_LABELS,
    ClusterEventKind.STORAGE,
    ClusterEventKind.ATTACHMENTS,
)


class SchedulingQueue:
    """Sorts the pods that wait for one scheduler into upstream's queues."""

    def __init__(self, snapshot: Snapshot, options: SchedulerOptions, now: datetime) -> None:
        self._snapshot = snapshot
        self._options = options
        self._now = now.timestamp()
        self._hints: dict[tuple[int, int, tuple[str, ...]], bool] = {}

    def sort(self, pods: Iterable[PodInfo], memory: Mapping[str, str]) -> Waiting:
        """Returns which of these pods are tried now. `memory` is the controller memory."""
        waiting = Waiting()
        for info in pods:
            last = LastAttempt.parse(memory.get(info.uid, ""))
            if last is not None:
                waiting.last_attempts[info.uid] = last
            self._sort_one(info, last, waiting)
        waiting.ready.sort(key=lambda info: self._order(info, waiting.last_attempts.get(info.uid)))
        return waiting

    def _order(self, info: PodInfo, last: LastAttempt | None) -> tuple[int, float]:
        """Returns a sort key: by priority, then by the time of creation or of the last attempt."""
        queued = info.created.timestamp() if last is None else last.since
        return -info.priority, queued

    def _sort_one(self, info: PodInfo, last: LastAttempt | None, waiting: Waiting) -> None:
        if info.source.spec.scheduling_gates:
            waiting.counts["gated"] += 1
            return
        due = 0.0 if last is None else self._due_in(info, last)
        if due <= 0:
            waiting.counts["active"] += 1
            waiting.ready.append(info)
            return
        is_woken = last is not None and due <= self._backoff(last)
        waiting.counts["backoff" if is_woken else "unschedulable"] += 1
        waiting.next_due = due if waiting.next_due is None else min(waiting.next_due, due)

    def _due_in(self, info: PodInfo, last: LastAttempt) -> float:
        """Returns the seconds until the pod is tried again; 0 or less if it is due."""
        waited = self._now - last.since
        backoff = 0.0 if info.nominated else self._backoff(last)
        if self._is_woken(info, last):
            return backoff - waited
        return self._options.pod_max_in_unschedulable_pods_duration - waited

    def _backoff(self, last: LastAttempt) -> float:
        first = self._options.pod_initial_backoff_seconds
        most = max(self._options.pod_max_backoff_seconds, first)
        return float(min(first * 2 ** min(last.attempts - 1, 30), most))

    def _is_woken(self, info: PodInfo, last: LastAttempt) -> bool:
        """Reports whether the pod should leave the unschedulable queue, subject to its back-off.

        It should after a cluster event that may help, a change of the pod, or an attempt that ended
        with an error.
        """
        if not last.plugins or last.position < self._snapshot.known_since:
            return True
        now = checksum(info)
        if now != last.checksum:
            return True
        if any(self._snapshot.claim_changes.get(key, 0) > last.position for key in info.claims):
            return True
        group = (last.position, now, last.plugins)  # the same for all pods of a template
        if group not in self._hints:
            self._hints[group] = self._has_helpful_event(info, last)
        return self._hints[group]

    def _has_helpful_event(self, info: PodInfo, last: LastAttempt) -> bool:
        kinds = frozenset[ClusterEventKind]().union(
            *(EVENTS_TO_REGISTER.get(p, frozenset()) for p in last.plugins)
        )
        filters = None
        for event in reversed(self._snapshot.cluster_events):
            if event.position <= last.position:
                return False
            if event.kind not in kinds:
                continue
            filters = filters or LocalFilters(info)
            if self._helps(info, filters, event, last.plugins):
                return True
        return False

    def _helps(
        self, info: PodInfo, filters: LocalFilters, event: ClusterEvent, plugins: tuple[str, ...]
    ) -> bool:
        """Reports whether this event may make the pod schedulable, by upstream's queueing hints."""
        return any(
            event.kind in EVENTS_TO_REGISTER.get(plugin, ())
            and self._hint(plugin, info, filters, event)
            for plugin in plugins
        )

    def _hint(self, plugin: str, info: PodInfo, filters: LocalFilters, event: ClusterEvent) -> bool:
        if event.kind in _WITHOUT_NODE:
            return True
        pod, node = event.pod, self._snapshot.by_name.get(event.node)
        if plugin == "PodTopologySpread":
            return pod is None or pod.namespace == info.namespace
        if plugin == "InterPodAffinity" and pod is not None:
            return self._terms_touch(info, pod)
        # No event helps on a node that the pod cannot use at all.
        return node is not None and node.node is not None and filters.filter_node(node) is None

    def _terms_touch(self, info: PodInfo, other: PodInfo) -> bool:
        labels_of = self._snapshot.namespace_labels
        mine = (*info.terms.affinity, *info.terms.anti_affinity)
        return any(term.matches(other.namespace, other.labels, labels_of) for term in mine) or any(
            term.matches(info.namespace, info.labels, labels_of)
            for term in other.terms.anti_affinity
        )
