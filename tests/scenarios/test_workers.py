"""Celery workers as users run them: each pool, and a clean stop."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from kcm.api.scheme import BUILT_IN
from kcm.coordination.workqueue import read_stats
from kcm.testing.builders import namespace
from kcm.testing.waiting import until
from tests.chaos.cluster import Cluster
from tests.chaos.world import PODS
from tests.new_objects import replica_set, strip_store_fields

pytestmark = pytest.mark.scenario


@pytest.mark.parametrize(
    "pool", ["prefork", "threads", pytest.param("solo", marks=pytest.mark.long)]
)
def test_a_replica_set_heals_in_every_pool(pool: str) -> None:
    cluster = Cluster(workers=1, beats=1, pool=pool)
    try:
        cluster.start()
        cluster.store.create(replica_set("web", replicas=20))
        until(lambda: cluster.store.count(PODS) == 20, "20 pods")
        for pod in cluster.pods_of("web")[:7]:
            cluster.store.delete(PODS, pod.key)
        cluster.settle()
        cluster.store.delete(BUILT_IN.lookup("rs"), "default/web")
        until(lambda: cluster.store.count(PODS) == 0, "the collection of the pods")
    finally:
        cluster.stop()


@pytest.fixture
def slow_cluster(tmp_path: Path) -> Iterator[Cluster]:
    cluster = Cluster(workers=1, beats=0)
    module = Path(__file__).parents[1] / "chaos" / "slow_controller.py"
    cluster.environment = {"KCM_CONTROLLER_MODULE": str(module), "SLOW_FOLDER": str(tmp_path)}
    try:
        cluster.start()
        until(lambda: any(stats.name == "slowlabeller" for stats in read_stats(cluster.io)))
        yield cluster
    finally:
        cluster.stop()


def test_a_warm_shutdown_finishes_what_runs(slow_cluster: Cluster, tmp_path: Path) -> None:
    slow_cluster.store.create(strip_store_fields(namespace("team")))
    until(lambda: bool(list(tmp_path.glob("in-*"))), "a sync in progress")
    (worker,) = slow_cluster.workers
    worker.send_signal(signal.SIGTERM)
    (tmp_path / "go").touch()
    assert worker.wait(15) == 0
    assert "labelled-by" in slow_cluster.store.get(BUILT_IN.lookup("ns"), "team").labels
    assert all(stats.running == 0 for stats in read_stats(slow_cluster.io))


def test_no_process_outlives_its_worker(slow_cluster: Cluster) -> None:
    family = [*slow_cluster.children(), *slow_cluster.managers()]
    assert len(family) >= 2
    (worker,) = slow_cluster.workers
    worker.kill()
    worker.wait()
    until(lambda: not any(process.is_running() for process in family), "the family's end")
