"""The server's folder on a small disk that fills up."""

from __future__ import annotations

import random
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from kcm.redisio import RedisIO
from kcm.testing.waiting import let_time_pass, until
from tests.chaos import workload
from tests.chaos.cluster import Cluster

SIZE = 24  # MiB


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A small disk of its own, where this user may mount one."""
    place = tmp_path / "disk"
    place.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={SIZE}m", "tmpfs", str(place)],
        capture_output=True,
        check=False,
    )
    if mounted.returncode != 0:
        pytest.skip(f"no disk can be mounted here: {mounted.stderr.decode().strip()}")
    yield place
    subprocess.run(["umount", "-l", str(place)], check=True)


@pytest.mark.chaos
def test_the_world_is_exact_after_the_disk_was_full(disk: Path) -> None:
    cluster = Cluster(workers=1, beats=1, data=disk)
    try:
        cluster.start()
        workload.prepare(cluster)
        cluster.settle(30)
        rng = random.Random(31)
        for _ in range(3):
            _fill(disk / "ballast")
            workload.stir(cluster, rng)
            until(lambda: _is_refusing(cluster), "the server to refuse writes")
            let_time_pass(4, "the disk stays full")
            (disk / "ballast").unlink()
            workload.stir(cluster, rng)
            cluster.settle()
    finally:
        cluster.stop()


def _is_refusing(cluster: Cluster) -> bool:
    # Such a server refuses even the PING of a health check.
    io = RedisIO(cluster.io.settings.model_copy(update={"health_check_interval": 0}))
    try:
        return bool(io.info("persistence")["aof_last_write_status"] == "err")
    finally:
        io.close()


def _fill(ballast: Path) -> None:
    with ballast.open("wb", buffering=0) as out:
        try:
            while True:
                out.write(b"x" * 65536)
        except OSError:
            return
