"""Chooses the pods to delete when a ReplicaSet has too many.

Source: ActivePodsWithRanks in pkg/controller/controller_utils.go, with the gates PodDeletionCost
and LogarithmicScaleDown enabled, Kubernetes 1.33.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from kcm.api.core_v1 import Pod
from kcm.helpers.pods import is_active, is_ready, most_restarts, ready_since
from kcm.sdk import Histogram, exponential_buckets, sum_counts

DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"

_PHASES = {"Pending": 0, "Unknown": 1, "Running": 2}
_COST = re.compile(r"0|-?[1-9][0-9]*|\+[1-9][0-9]*")
_INT32 = range(-(2**31), 2**31)
_MICROSECOND = timedelta(microseconds=1)


AGE_RATIO = Histogram(
    "replicaset_controller_sorting_deletion_age_ratio",
    "The ratio of chosen deleted pod's ages to the current youngest pod's age (at the time). "
    "Should be <2. Only Ready pods are counted.",
    exponential_buckets(0.25, 2, 6),
)


def age_ratios(pods: Iterable[Pod], to_delete: Iterable[Pod], now: datetime) -> dict[str, int]:
    """Returns the counts of AGE_RATIO: the ages of the deleted pods, divided by that of the
    youngest.
    """
    youngest = min((_age(pod, now) for pod in pods if is_ready(pod)), default=0.0)
    if youngest <= 0:
        return {}
    ages = (_age(pod, now) for pod in to_delete if is_ready(pod))
    return sum_counts(AGE_RATIO.observe(age / youngest) for age in ages)


def _age(pod: Pod, now: datetime) -> float:
    created = pod.metadata.creation_timestamp
    return (now - created).total_seconds() if created is not None else 0.0


def first_to_delete(
    pods: Sequence[Pod], count: int, related: Iterable[Pod], now: datetime
) -> list[Pod]:
    """Returns the `count` of `pods` that are the first to delete, by upstream's criteria.

    `related` are the pods of all ReplicaSets of the same owner. Pods on nodes that run many of them
    are deleted before others.
    """
    if count >= len(pods):
        return list(pods)
    on_node = Counter(pod.spec.node_name for pod in related if is_active(pod))
    ranked = sorted(_DeletionCandidate(pod, on_node[pod.spec.node_name], now) for pod in pods)
    return [candidate.pod for candidate in ranked[:count]]


@dataclass(frozen=True, slots=True)
class _Moment:
    """A time, and the order of magnitude of the age since then."""

    at: datetime
    magnitude: int

    @classmethod
    def of(cls, at: datetime | None, now: datetime) -> _Moment | None:
        return None if at is None else cls(at, _magnitude(now - at))


class _DeletionCandidate:
    """A pod that is ordered by how soon it is to be deleted.

    The first criteria are compared as a tuple. Times are not, since equal times and times of equal
    magnitude are ordered in different ways.
    """

    __slots__ = ("created", "head", "pod", "ready", "restarts")

    def __init__(self, pod: Pod, rank: int, now: datetime) -> None:
        ready = is_ready(pod)
        self.pod = pod
        self.head = (
            bool(pod.spec.node_name),
            _PHASES.get(pod.status.phase or "", 0),
            ready,
            deletion_cost(pod),
            -rank,
        )
        self.ready = _Moment.of(ready_since(pod), now) if ready else None
        self.restarts = most_restarts(pod)
        self.created = _Moment.of(pod.metadata.creation_timestamp, now)

    def __lt__(self, other: _DeletionCandidate) -> bool:
        if self.head != other.head:
            return self.head < other.head
        if self.ready != other.ready:
            return self._is_younger(self.ready, other.ready, other.pod.uid)
        if self.restarts != other.restarts:
            return self.restarts > other.restarts
        if self.created != other.created:
            return self._is_younger(self.created, other.created, other.pod.uid)
        return False

    def _is_younger(self, mine: _Moment | None, theirs: _Moment | None, uid: str) -> bool:
        """Reports whether this pod's age is of a smaller magnitude. A missing time is the youngest.

        Within one magnitude the uids decide, which makes the choice random.
        """
        if mine is None or theirs is None:
            return mine is None
        if mine.magnitude != theirs.magnitude:
            return mine.magnitude < theirs.magnitude
        return self.pod.uid < uid


def _magnitude(age: timedelta) -> int:
    """Returns the integer part of the binary logarithm of the age in nanoseconds, -1 if it is not
    positive.
    """
    nanoseconds = age // _MICROSECOND * 1000
    return nanoseconds.bit_length() - 1 if nanoseconds > 0 else -1


def deletion_cost(pod: Pod) -> int:
    """Returns the pod's deletion cost from its annotation, 0 if that is missing or not valid."""
    text = pod.annotations.get(DELETION_COST, "")
    if not _COST.fullmatch(text):
        return 0
    cost = int(text)
    return cost if cost in _INT32 else 0
