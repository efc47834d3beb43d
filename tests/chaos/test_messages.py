"""Celery messages delivered three times or not at all change nothing (designs 0004 and 0029)."""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator

import pytest

from kcm.coordination.workqueue import read_stats
from kcm.redisio import RedisIO
from kcm.settings import Settings
from kcm.testing.waiting import until
from tests.chaos import workload
from tests.chaos.cluster import Cluster


class Tamperer:
    """Sits between the queues and the broker: one message in five is dropped, the others go
    out three times."""

    def __init__(self, cluster: Cluster, seed: int) -> None:
        self._io = RedisIO(Settings(redis_url=cluster.server.url))
        self._rng = random.Random(seed)
        self._stop = threading.Event()
        self._routes = {
            f"{cluster.io.keys.prefix}:staging:{stats.name}": self._reroute(stats.name)
            for stats in read_stats(cluster.io)
        }
        self.dropped = self.tripled = 0
        self._thread = threading.Thread(target=self._run, name="tamperer", daemon=True)
        self._thread.start()

    def _reroute(self, queue: str) -> bytes:
        config = self._io.keys.queue(queue, "config")
        real: bytes = self._io.execute("HGET", config, "list")
        self._io.execute("HSET", config, "list", f"{self._io.keys.prefix}:staging:{queue}")
        return real

    def _run(self) -> None:
        while not self._stop.is_set():
            popped = self._io.execute("BRPOP", *self._routes, 0.2)
            if popped is None:
                continue
            staging, message = popped
            if self._rng.random() < 0.2:
                self.dropped += 1
                continue
            self.tripled += 1
            self._io.execute("LPUSH", self._routes[staging.decode()], message, message, message)

    def close(self) -> None:
        self._stop.set()
        self._thread.join(2)
        self._io.close()


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    cluster = Cluster(workers=1, beats=1)
    try:
        cluster.start()
        wanted = {"replicaset", "garbagecollector"}
        until(
            lambda: wanted <= {stats.name for stats in read_stats(cluster.io)},
            "the queues' configuration",
        )
        yield cluster
    finally:
        cluster.stop()


def test_dropped_and_tripled_messages_change_nothing(cluster: Cluster) -> None:
    tamperer = Tamperer(cluster, seed=3)
    try:
        workload.prepare(cluster)
        rng = random.Random(4)
        for _ in range(4):
            workload.stir(cluster, rng, steps=25)
            cluster.settle(40)
    finally:
        tamperer.close()
    assert tamperer.dropped > 3
    assert tamperer.tripled > 10
