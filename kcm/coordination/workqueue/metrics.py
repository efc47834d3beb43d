"""The metrics of the work queues, under upstream's names.

The numbers are in Redis, so every process exposes the same values for all of them: scrape one
process, or aggregate with `max`. Source:
staging/src/k8s.io/component-base/metrics/prometheus/workqueue/metrics.go, Kubernetes 1.33. Names
with `kcm_` do not exist upstream.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import structlog
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.registry import Collector

from kcm import errors
from kcm.coordination.workqueue.queue import read_stats
from kcm.coordination.workqueue.types import LatencyHistogram, QueueStats
from kcm.redisio import RedisIO

log = structlog.get_logger(__name__)

_GAUGES: tuple[tuple[str, str, Callable[[QueueStats], float]], ...] = (
    ("workqueue_depth", "Keys that wait in the work queue", lambda s: s.depth),
    (
        "workqueue_unfinished_work_seconds",
        "Seconds of syncs in progress, which work_duration does not have yet; it grows if some are "
        "stuck",
        lambda s: s.unfinished,
    ),
    (
        "workqueue_longest_running_processor_seconds",
        "Seconds since the oldest sync in progress began",
        lambda s: s.longest,
    ),
    ("kcm_workqueue_running", "Keys in flight", lambda s: s.running),
    ("kcm_workqueue_delayed", "Keys that wait for their due time", lambda s: s.delayed),
    ("kcm_workqueue_oldest_seconds", "Age of the key that waits longest", lambda s: s.oldest),
)
# prometheus_client appends `_total`.
_COUNTERS: tuple[tuple[str, str, Callable[[QueueStats], float]], ...] = (
    ("workqueue_adds", "Adds handled by the work queue", lambda s: s.adds),
    ("workqueue_retries", "Retries handled by the work queue", lambda s: s.retries),
    ("kcm_workqueue_reaped", "Keys whose leases were not renewed in time", lambda s: s.reaped),
    ("kcm_workqueue_messages", "Wake-ups sent through the broker", lambda s: s.messages),
    ("kcm_workqueue_lost_messages", "Wake-ups found lost", lambda s: s.lost_messages),
)
_HISTOGRAMS: tuple[tuple[str, str, Callable[[QueueStats], LatencyHistogram]], ...] = (
    (
        "workqueue_queue_duration_seconds",
        "Seconds a key waits in the work queue before it is taken",
        lambda s: s.queue_duration,
    ),
    (
        "workqueue_work_duration_seconds",
        "Seconds that a sync of a key from the work queue takes",
        lambda s: s.work_duration,
    ),
)


class QueueCollector(Collector):
    """Collects the metrics of all queues with one call per scrape, none while the store is
    unavailable.
    """

    def __init__(self, io: RedisIO) -> None:
        self._io = io

    def collect(self) -> Iterable[Metric]:
        """Returns the families with the present values; none while the store is unavailable."""
        try:
            return families(read_stats(self._io))
        except errors.Temporary as error:
            log.warning("work queue metrics are not available", error=str(error))
            return []

    def describe(self) -> Iterable[Metric]:
        """Returns the families without values, so that registering does not need the store."""
        return families([])


def families(stats: Sequence[QueueStats]) -> list[Metric]:
    """Returns the metric families of these queues."""
    metrics: list[Metric] = []
    for name, text, value in _GAUGES:
        gauge = GaugeMetricFamily(name, text, labels=["name"])
        for queue in stats:
            gauge.add_metric([queue.name], value(queue))
        metrics.append(gauge)
    for name, text, value in _COUNTERS:
        counter = CounterMetricFamily(name, text, labels=["name"])
        for queue in stats:
            counter.add_metric([queue.name], value(queue))
        metrics.append(counter)
    return metrics + [_histogram(name, text, of, stats) for name, text, of in _HISTOGRAMS]


def _histogram(
    name: str, text: str, of: Callable[[QueueStats], LatencyHistogram], stats: Sequence[QueueStats]
) -> HistogramMetricFamily:
    family = HistogramMetricFamily(name, text, labels=["name"])
    for queue in stats:
        histogram = of(queue)
        family.add_metric([queue.name], histogram.cumulate(), histogram.sum_seconds)
    return family
