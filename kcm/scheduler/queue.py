"""Which pods are tried now, in which order, and when the next ones are due.

A pod that waits is derivable from its object; what an attempt left behind (how often,
when, who refused) is a short text per pod in the key's memory, so that any worker's next
pass goes on from there. Upstream's four queues are found anew at each pass: active,
backoff, unschedulable, gated.

Differs from upstream: a pod in backoff is not tried early when nothing else waits
(SchedulerPopFromBackoffQ), except one whose place is kept for it.

Source: pkg/scheduler/backend/queue/scheduling_queue.go, Kubernetes 1.33.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from kcm.scheduler.changes import HELPS, Happening, Kind
from kcm.scheduler.options import SchedulerOptions
from kcm.scheduler.plugins.local import LocalFilters
from kcm.scheduler.podinfo import PodInfo
from kcm.scheduler.snapshot import Snapshot
from kcm.scheduler.template import signature

QUEUES = ("active", "backoff", "unschedulable", "gated")


@dataclass(frozen=True)
class Parked:
    """What an attempt that failed left behind."""

    attempts: int
    since: float  # Unix time of the last attempt
    position: int  # of the snapshot that it looked at
    checksum: int  # of what the pod asked for
    plugins: tuple[str, ...]  # who refused; none: an error

    def __str__(self) -> str:
        plugins = ",".join(self.plugins)
        return f"{self.attempts} {self.since:.3f} {self.position} {self.checksum} {plugins}"

    @classmethod
    def parse(cls, text: str) -> Parked | None:
        """What `str` wrote; None for anything else."""
        parts = text.split(" ")
        try:
            attempts, since, position, checksum, plugins = parts
            names = tuple(name for name in plugins.split(",") if name)
            return cls(int(attempts), float(since), int(position), int(checksum), names)
        except ValueError:
            return None


def checksum(info: PodInfo) -> int:
    """Changes when the pod asks for something else."""
    return zlib.crc32(repr(signature(info)).encode())


@dataclass
class Waiting:
    """What waits at one moment."""

    ready: list[PodInfo] = field(default_factory=list)  # in the order in which they are tried
    parked: dict[str, Parked] = field(default_factory=dict)  # by uid, of pods that still wait
    counts: dict[str, int] = field(default_factory=lambda: dict.fromkeys(QUEUES, 0))
    next_due: float | None = None  # seconds until one more is ready


class Queue:
    """Sorts the pods that wait for one scheduler."""

    def __init__(self, snapshot: Snapshot, options: SchedulerOptions, now: datetime) -> None:
        self._snapshot = snapshot
        self._options = options
        self._now = now.timestamp()
        self._helped: dict[tuple[int, int, tuple[str, ...]], bool] = {}

    def sort(self, pods: Iterable[PodInfo], memory: Mapping[str, str]) -> Waiting:
        """What is to be done with these pods."""
        found = Waiting()
        for info in pods:
            parked = Parked.parse(memory.get(info.uid, ""))
            if parked is not None:
                found.parked[info.uid] = parked
            self._sort_one(info, parked, found)
        found.ready.sort(key=lambda info: self._order(info, found.parked.get(info.uid)))
        return found

    def _order(self, info: PodInfo, parked: Parked | None) -> tuple[int, float]:
        """By priority, then by the time since when it has waited in the queue."""
        queued = info.created.timestamp() if parked is None else parked.since
        return -info.priority, queued

    def _sort_one(self, info: PodInfo, parked: Parked | None, found: Waiting) -> None:
        if info.source.spec.scheduling_gates:
            found.counts["gated"] += 1
            return
        due = 0.0 if parked is None else self._due_in(info, parked)
        if due <= 0:
            found.counts["active"] += 1
            found.ready.append(info)
            return
        is_woken = parked is not None and due <= self._backoff(parked)
        found.counts["backoff" if is_woken else "unschedulable"] += 1
        found.next_due = due if found.next_due is None else min(found.next_due, due)

    def _due_in(self, info: PodInfo, parked: Parked) -> float:
        """Seconds until the pod is tried again, if nothing happens before."""
        waited = self._now - parked.since
        backoff = 0.0 if info.nominated else self._backoff(parked)
        if self._is_woken(info, parked):
            return backoff - waited
        return self._options.pod_max_in_unschedulable_pods_duration - waited

    def _backoff(self, parked: Parked) -> float:
        first = self._options.pod_initial_backoff_seconds
        most = max(self._options.pod_max_backoff_seconds, first)
        return float(min(first * 2 ** min(parked.attempts - 1, 30), most))

    def _is_woken(self, info: PodInfo, parked: Parked) -> bool:
        """Whether something happened that may help; an error is worth another try."""
        if not parked.plugins or parked.position < self._snapshot.known_since:
            return True
        now = checksum(info)
        if now != parked.checksum:
            return True
        group = (parked.position, now, parked.plugins)  # those of a template wait alike
        if group not in self._helped:
            self._helped[group] = self._happened(info, parked)
        return self._helped[group]

    def _happened(self, info: PodInfo, parked: Parked) -> bool:
        kinds = frozenset[Kind]().union(*(HELPS.get(p, frozenset()) for p in parked.plugins))
        filters = None
        for happening in reversed(self._snapshot.happenings):
            if happening.position <= parked.position:
                return False
            if happening.kind not in kinds:
                continue
            filters = filters or LocalFilters(info)
            if self._helps(info, filters, happening, parked.plugins):
                return True
        return False

    def _helps(
        self, info: PodInfo, filters: LocalFilters, what: Happening, plugins: tuple[str, ...]
    ) -> bool:
        """Upstream's queueing hints: whether just this event may have changed the answer."""
        return any(
            what.kind in HELPS.get(plugin, ()) and self._hint(plugin, info, filters, what)
            for plugin in plugins
        )

    def _hint(self, plugin: str, info: PodInfo, filters: LocalFilters, what: Happening) -> bool:
        if what.kind is Kind.NAMESPACE_LABELS:
            return True
        pod, node = what.pod, self._snapshot.by_name.get(what.node)
        if plugin == "PodTopologySpread":
            return pod is None or pod.namespace == info.namespace
        if plugin == "InterPodAffinity" and pod is not None:
            return self._terms_touch(info, pod)
        # Where the node itself does not want the pod, nothing there helps.
        return node is not None and node.node is not None and filters.refuse_node(node) is None

    def _terms_touch(self, info: PodInfo, other: PodInfo) -> bool:
        labels_of = self._snapshot.namespace_labels
        mine = (*info.terms.affinity, *info.terms.anti_affinity)
        return any(term.matches(other.namespace, other.labels, labels_of) for term in mine) or any(
            term.matches(info.namespace, info.labels, labels_of)
            for term in other.terms.anti_affinity
        )
