"""The scheduler's metrics, under upstream's names.

Source: pkg/scheduler/metrics/metrics.go, Kubernetes 1.33.
"""

from __future__ import annotations

from kcm.sdk import Counter, Histogram, exponential_buckets, sum_counts

ATTEMPTS = Counter(
    "scheduler_schedule_attempts",
    "Number of attempts to schedule pods, by the result",
    ("result", "profile"),
)
PREEMPTIONS = Counter(
    "scheduler_preemption_attempts", "Total preemption attempts in the cluster till now"
)
SLI = Histogram(
    "scheduler_pod_scheduling_sli_duration_seconds",
    "Seconds from a pod's creation to its binding, by attempts",
    exponential_buckets(0.01, 2, 20),
    ("attempts",),
)
METRICS = (ATTEMPTS, PREEMPTIONS, SLI)
PENDING = ".pending"  # the field of the controller memory with the number of pods by queue


class SchedulerCounts:
    """The amounts that one pass adds to the metrics."""

    def __init__(self, scheduler: str) -> None:
        self._scheduler = scheduler
        self.by_series: dict[str, int] = {}

    def attempt(self, result: str) -> None:
        """Counts an attempt to schedule a pod: `scheduled`, `unschedulable` or `error`."""
        self._add(ATTEMPTS.count(result, self._scheduler))

    def preemption(self) -> None:
        """Counts an attempt at preemption."""
        self._add(PREEMPTIONS.count())

    def scheduled(self, attempts: int, seconds: float) -> None:
        """Counts a pod that was bound `seconds` seconds after its creation."""
        self._add(SLI.observe(seconds, str(attempts) if attempts < 16 else "16+"))

    def _add(self, counts: dict[str, int]) -> None:
        self.by_series.update(sum_counts((self.by_series, counts)))
