"""The number of pods that wait for the scheduler on `/metrics`, under upstream's name.

Source: pkg/scheduler/metrics/metrics.go, Kubernetes 1.33.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence

from prometheus_client.core import GaugeMetricFamily, Metric

from kcm.controllers.scheduler.metrics import PENDING
from kcm.redisio import RedisIO

_QUEUES = ("active", "backoff", "unschedulable", "gated")


def pending_families(io: RedisIO, names: Sequence[str]) -> Iterable[Metric]:
    """Returns the numbers of pods by queue. `names` are those of the schedulers. Raises
    Temporary.
    """
    family = GaugeMetricFamily(
        "scheduler_pending_pods", "Number of pending pods, by the queue", labels=["queue"]
    )
    totals = dict.fromkeys(_QUEUES, 0)
    keys = [io.keys.memory("scheduler", name) for name in names]
    for text in io.pipeline([("HGET", key, PENDING) for key in keys]) if keys else ():
        for queue, count in json.loads(text or b"{}").items():
            totals[queue] = totals.get(queue, 0) + count
    for queue, count in totals.items():
        family.add_metric([queue], count)
    yield family
