"""Counters that several processes add to."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest
from prometheus_client import Metric, generate_latest
from prometheus_client.registry import Collector, CollectorRegistry

from kcm import errors
from kcm.api.scheme import BUILT_IN
from kcm.manager.metrics import store_families, sync_families
from kcm.reconcile.metrics import PASS, SYNC, SyncMetrics, read_totals
from kcm.redisio import RedisIO
from kcm.settings import Settings

CHILD = """
from kcm.redisio import RedisIO
from kcm.reconcile.metrics import SYNC, SyncMetrics
metrics = SyncMetrics(RedisIO())
for _ in range(100):
    metrics.observe(SYNC, "replicaset-controller", "success", 0.02)
metrics.observe(SYNC, "replicaset-controller", "error", 70.0)
metrics.end()
"""


def test_two_processes_add_up(io: RedisIO, settings: Settings) -> None:
    root = Path(__file__).parents[3]
    environ = {**os.environ, "KCM_REDIS_URL": settings.redis_url, "PYTHONPATH": str(root)}
    children = [subprocess.Popen([sys.executable, "-c", CHILD], env=environ) for _ in range(2)]
    assert [child.wait(30) for child in children] == [0, 0]
    total = read_totals(io)[SYNC, "replicaset-controller"]
    assert total.results == {"success": 200, "error": 2}
    assert total.seconds == pytest.approx(144.0)
    text = _page(io)
    for line in (
        'kcm_reconcile_total{controller="replicaset-controller",result="success"} 200.0',
        'kcm_reconcile_time_seconds_bucket{controller="replicaset-controller",le="0.01"} 0.0',
        'kcm_reconcile_time_seconds_bucket{controller="replicaset-controller",le="0.025"} 200.0',
        'kcm_reconcile_time_seconds_bucket{controller="replicaset-controller",le="+Inf"} 202.0',
        'kcm_reconcile_time_seconds_sum{controller="replicaset-controller"} 144.0',
    ):
        assert line in text


def test_a_batch_whose_reply_was_lost_is_added_once(
    io: RedisIO, monkeypatch: pytest.MonkeyPatch
) -> None:
    metrics, call = SyncMetrics(io), io.call
    metrics.observe(PASS, "podgc", "success", 0.1)

    def lose_the_reply(*args: str, **kwargs: str) -> list[str]:
        call(*args, **kwargs)
        raise errors.StoreUnavailable

    with monkeypatch.context() as broken:
        broken.setattr(io, "call", lose_the_reply)
        with pytest.raises(errors.StoreUnavailable):
            metrics.flush()
    metrics.observe(PASS, "podgc", "error", 0.1)
    metrics.flush()
    assert read_totals(io)[PASS, "podgc"].results == {"success": 1, "error": 1}


def test_foreign_fields_do_not_break_the_page(io: RedisIO) -> None:
    io.execute("HSET", io.keys.metrics(), "rubbish", "x", "a|b|c", "y", "a|b|bucket|q", "1")
    assert read_totals(io) == {}


def test_a_lease_that_ran_out_is_not_held(io: RedisIO) -> None:
    io.execute("HSET", io.keys.lease("beat"), "holder", "h", "token", "1", "expires", "1")
    families = {family.name: family for family in store_families(io, ["beat", "ingest"], BUILT_IN)}
    assert families["kcm_lease_held"].samples == []


def _page(io: RedisIO) -> str:
    class Syncs(Collector):
        def collect(self) -> Iterable[Metric]:
            return sync_families(read_totals(io))

    registry = CollectorRegistry()
    registry.register(Syncs())
    return generate_latest(registry).decode()
