"""A worker frozen beyond its lease cannot write when it wakes (design 0001)."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from kcm.api.scheme import BUILT_IN
from kcm.coordination.workqueue import read_stats
from kcm.testing.builders import namespace
from kcm.testing.waiting import until
from tests.chaos.cluster import Cluster
from tests.new_objects import strip_store_fields

NAMESPACES = BUILT_IN.lookup("namespaces")


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    cluster = Cluster(workers=1, beats=0)
    module = Path(__file__).with_name("slow_controller.py")
    cluster.environment = {"KCM_CONTROLLER_MODULE": str(module), "SLOW_FOLDER": str(tmp_path)}
    try:
        cluster.start()
        until(lambda: any(s.name == "slowlabeller" for s in read_stats(cluster.io)))
        yield cluster
    finally:
        cluster.stop()


def test_a_write_after_the_lease_is_refused_by_the_script(cluster: Cluster, tmp_path: Path) -> None:
    cluster.store.create(strip_store_fields(namespace("team")))
    until(lambda: bool(list(tmp_path.glob("in-*"))), "a sync in progress")
    (frozen,) = (int(mark.name.removeprefix("in-")) for mark in tmp_path.glob("in-*"))
    os.kill(frozen, signal.SIGSTOP)
    try:
        until(lambda: len(list(tmp_path.glob("in-*"))) == 2, "another worker's take")
        (tmp_path / "go").touch()
        until(lambda: "labelled-by" in cluster.store.get(NAMESPACES, "team").labels)
        before = cluster.store.get(NAMESPACES, "team")
        assert before.labels["labelled-by"] != str(frozen)
        assert count_fenced_writes(cluster) == 0
    finally:
        os.kill(frozen, signal.SIGCONT)
    until(lambda: count_fenced_writes(cluster) == 1, "a refusal that the script counted")
    assert cluster.store.get(NAMESPACES, "team") == before


def count_fenced_writes(cluster: Cluster) -> int:
    return int(cluster.io.execute("HGET", cluster.io.keys.store_stats(), "fenced") or 0)
