"""The numbers of attached volumes on `/metrics`, under upstream's names.

They are those of the last reconcile sync of the attach-detach controller. Source:
pkg/controller/volume/attachdetach/metrics/metrics.go, Kubernetes 1.33.
"""

from __future__ import annotations

import json
from collections.abc import Iterable

from prometheus_client.core import GaugeMetricFamily, Metric

from kcm.controllers.attachdetach import AttachDetachController
from kcm.controllers.attachdetach.sync import IN_USE, TOTALS, VERIFYING
from kcm.redisio import RedisIO

LOOP = f"{AttachDetachController.short_name}.{VERIFYING}"
_GAUGES = (
    (
        "attachdetach_controller_total_volumes",
        "Number of volumes in A/D Controller",
        ("plugin_name", "state"),
        TOTALS,
    ),
    (
        "storage_count_attachable_volumes_in_use",
        "Measure number of volumes in use",
        ("node", "volume_plugin"),
        IN_USE,
    ),
)


def volume_families(io: RedisIO) -> Iterable[Metric]:
    """Returns the gauges. Raises Temporary."""
    texts = io.execute("HMGET", io.keys.tick_state(LOOP), *(field for *_, field in _GAUGES))
    for (name, text, labels, _), raw in zip(_GAUGES, texts, strict=True):
        family = GaugeMetricFamily(name, text, labels=labels)
        for *values, number in json.loads(raw or b"[]"):
            family.add_metric([str(value) for value in values], float(number))
        yield family
