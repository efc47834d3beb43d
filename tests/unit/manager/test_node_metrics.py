"""Tests the metrics of the node lifecycle controller."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from prometheus_client.core import Metric

from kcm.controllers.nodelifecycle import NodeLifecycleController
from kcm.manager.declared_metrics import families_of_declared
from kcm.manager.metrics import sync_families
from kcm.manager.node_metrics import node_families
from kcm.reconcile.metrics import BUCKETS, PASS, Totals
from kcm.redisio.keys import Keys
from kcm.testing.builders import pod
from tests.unit.controllers.nodelifecycle_world import Silence, in_zone

FIVE = [*(in_zone(f"a{n}", "a") for n in range(4)), in_zone("b0", "b")]


class Stored:
    """A server that holds the stored zones."""

    keys = Keys()

    def __init__(self, zones: str | None) -> None:
        self._zones = zones

    def execute(self, *_: Any) -> Any:
        return self._zones.encode() if self._zones else None


def samples(families: Iterable[Metric]) -> dict[tuple[str, ...], float]:
    return {(s.name, *s.labels.values()): s.value for f in families for s in f.samples}


def collect_samples(silence: Silence) -> dict[tuple[str, ...], float]:
    stored: Any = Stored(silence.state.get("zones"))
    declared = families_of_declared(NodeLifecycleController.metrics, silence.counts)
    return samples([*node_families(stored), *declared])


def test_zones_are_shown_as_the_last_look_found_them() -> None:
    silence = Silence(*FIVE)
    silence.run(2)
    silence.silent = {"a0"}
    silence.run(12)
    values = collect_samples(silence)
    assert values["node_collector_zone_size", "a"] == 4
    assert values["node_collector_zone_health", "a"] == 75
    assert values["node_collector_unhealthy_nodes_in_zone", "a"] == 1
    assert values["node_collector_zone_health", "b"] == 100


def test_an_eviction_is_counted_once_however_many_passes_there_are() -> None:
    silence = Silence(*FIVE)
    silence.run(2)
    silence.silent = {"a0"}
    silence.run(30)
    assert silence.tainted_at.keys() == {"a0"}
    assert collect_samples(silence)["node_collector_evictions_total", "a"] == 1


def test_direct_eviction_counts_nodes_not_pods() -> None:
    pods = tuple(pod(f"p{n}", node="a0", phase="Running", ready=True) for n in range(3))
    silence = Silence(*FIVE, pods=pods, enable_taint_manager=False, pod_eviction_timeout=5)
    silence.run(2)
    silence.silent = {"a0"}
    silence.run(40)
    assert silence.pod("p0").deleting
    assert collect_samples(silence)["node_collector_evictions_total", "a"] == 1


def test_without_nodes_there_are_no_zones() -> None:
    stored: Any = Stored(None)
    assert samples(node_families(stored)) == {}


def test_a_look_at_all_nodes_has_upstreams_name_too() -> None:
    total = Totals({"success": 2}, (2, *[0] * len(BUCKETS)), 0.004)
    values = samples(sync_families({(PASS, "nodelifecycle.monitorNodeStatus"): total}))
    name = "node_collector_update_all_nodes_health_duration_seconds"
    assert values[f"{name}_count",] == 2
    assert values[f"{name}_sum",] == 0.004
