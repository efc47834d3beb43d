"""Processes of an earlier version and of this one work on the same Redis."""

from __future__ import annotations

import io
import os
import random
import signal
import subprocess
import tarfile
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from tests.chaos import workload
from tests.chaos.cluster import ROOT, Cluster
from tests.chaos.world import SETS
from tests.new_objects import replica_set

# A commit of 0.2.0, from before it is released. KCM_TEST_EARLIER names another: a hash or a tag.
EARLIER = "945ccf70"


@pytest.fixture(scope="module")
def earlier(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Gives the tree of the earlier version, which runs with this one's packages."""
    commit = os.environ.get("KCM_TEST_EARLIER", EARLIER)
    packed = subprocess.run(
        ["git", "archive", commit, "kcm", "workers", "beat_schedule.py", "pyproject.toml"],
        cwd=ROOT, capture_output=True, check=False,
    )  # fmt: skip
    if packed.returncode:
        pytest.skip(f"git has no commit {commit} here: {packed.stderr.decode().strip()}")
    folder = tmp_path_factory.mktemp("earlier")
    with tarfile.open(fileobj=io.BytesIO(packed.stdout)) as archive:
        archive.extractall(folder, filter="data")
    return folder


@pytest.fixture
def cluster(earlier: Path) -> Iterator[Cluster]:
    """Gives two workers with their managers, and two beats, of the earlier version."""
    cluster = Cluster(workers=2, beats=2)
    cluster.root = earlier
    try:
        cluster.start()
        workload.prepare(cluster)
        yield cluster
    finally:
        cluster.stop()


def count_of(cluster: Cluster, root: Path) -> int:
    """Returns how many of the cluster's processes were started from a tree."""
    return sum(Path(process.cwd()) == root for process in cluster.everybody())


def replace_one(cluster: Cluster, process: psutil.Popen) -> None:
    """Ends a process as a supervisor does, and starts one of the cluster's tree in its place."""
    process.send_signal(signal.SIGTERM)
    process.wait(60)
    cluster.start()


def add_field_of_the_future(cluster: Cluster) -> None:
    """Stores a ReplicaSet with a field that no version here has, as a later one would."""
    later = replica_set("later", replicas=3)
    document = later.model_dump(by_alias=True, exclude_none=True, mode="json")
    document["spec"]["template"]["spec"]["laterField"] = {"a": 1}
    cluster.store.create(type(later).model_validate(document))


def read_field_of_the_future(cluster: Cluster) -> object:
    stored = cluster.store.get(SETS, "default/later").model_dump(by_alias=True, mode="json")
    return stored["spec"]["template"]["spec"].get("laterField")


@pytest.mark.chaos
def test_processes_are_replaced_one_after_the_other_and_back_again(
    cluster: Cluster, earlier: Path
) -> None:
    rng = random.Random(31)
    add_field_of_the_future(cluster)
    cluster.settle()
    for root in (ROOT, earlier):
        cluster.root = root
        for process in [*cluster.workers, *cluster.beats]:
            workload.stir(cluster, rng)
            replace_one(cluster, process)
            workload.stir(cluster, rng)
        cluster.settle()
        assert count_of(cluster, root) == len(cluster.everybody())
        assert read_field_of_the_future(cluster) == {"a": 1}


@pytest.mark.chaos
def test_a_worker_of_each_version_serve_the_same_queues(cluster: Cluster, earlier: Path) -> None:
    add_field_of_the_future(cluster)
    cluster.root = ROOT
    replace_one(cluster, cluster.workers[0])
    workload.stir(cluster, random.Random(32))
    cluster.settle()
    assert count_of(cluster, ROOT) > 0
    assert count_of(cluster, earlier) > 0
    assert read_field_of_the_future(cluster) == {"a": 1}
