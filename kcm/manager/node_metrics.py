"""The zones of the node lifecycle controller on `/metrics`, under upstream's names.

The zones are those of its last pass. Source: pkg/controller/nodelifecycle/metrics.go, Kubernetes
1.33. The deprecated evictions_number and the duration for a single node are left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from prometheus_client.core import GaugeMetricFamily, Metric

from kcm.controllers.nodelifecycle import NodeLifecycleController
from kcm.controllers.nodelifecycle.controller import MONITORING
from kcm.controllers.nodelifecycle.memory import load_zones
from kcm.controllers.nodelifecycle.zones import Zone, format_zone
from kcm.redisio import RedisIO

MONITOR = f"{NodeLifecycleController.short_name}.{MONITORING}"  # the loop that checks the nodes
DURATION = "node_collector_update_all_nodes_health_duration_seconds"
_GAUGES: tuple[tuple[str, str, Callable[[Zone], float]], ...] = (
    (
        "node_collector_zone_health",
        "Percentage of healthy nodes, by zone",
        lambda zone: 100 * (zone.nodes - zone.unhealthy) / zone.nodes if zone.nodes else 100.0,
    ),
    ("node_collector_zone_size", "Number of nodes, by zone", lambda zone: zone.nodes),
    (
        "node_collector_unhealthy_nodes_in_zone",
        "Number of nodes that are not ready, by zone",
        lambda zone: zone.unhealthy,
    ),
)


def node_families(io: RedisIO) -> Iterable[Metric]:
    """Returns the gauges of the zones. Raises Temporary."""
    raw = io.execute("HGET", io.keys.tick_state(MONITOR), "zones")
    zones = load_zones({"zones": raw.decode()} if raw else {})
    for name, text, value in _GAUGES:
        family = GaugeMetricFamily(name, text, labels=["zone"])
        for key, zone in zones.items():
            family.add_metric([format_zone(key)], value(zone))
        yield family
