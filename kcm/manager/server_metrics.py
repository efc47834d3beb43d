"""Metrics of the Redis server: its memory, its replicas, and what became of its data."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from kcm.redisio import RedisIO


def server_families(
    io: RedisIO, meta: Mapping[bytes, bytes], stats: Mapping[bytes, bytes]
) -> Iterable[Metric]:
    """Returns the metrics. `meta` and `stats` are the store's hashes of these names.

    Raises Temporary.
    """
    memory, replication = io.info("memory"), io.info("replication")
    yield GaugeMetricFamily(
        "kcm_store_used_memory_bytes", "Memory that the server uses", memory.get("used_memory", 0)
    )
    yield GaugeMetricFamily(
        "kcm_store_max_memory_bytes",
        "Memory at which the server refuses writes or evicts keys; 0: no limit",
        memory.get("maxmemory", 0),
    )
    replicas = list(list_replicas(replication))
    yield GaugeMetricFamily(
        "kcm_store_replicas", "Replicas that are connected and in step", len(replicas)
    )
    yield GaugeMetricFamily(
        "kcm_store_replication_behind_bytes",
        "Bytes that the replica furthest behind has not acknowledged; 0 without replicas",
        max((int(replication["master_repl_offset"]) - offset for offset in replicas), default=0),
    )
    yield GaugeMetricFamily(
        "kcm_store_epoch_start",
        "First resourceVersion of the present epoch; 0 in the first one",
        int(meta.get(b"epoch_start", 0)),
    )
    yield CounterMetricFamily(
        "kcm_store_emptied",
        "How often the store was found to have lost all of its data",
        value=int(stats.get(b"emptied", 0)),
    )


def list_replicas(replication: Mapping[str, Any]) -> Iterator[int]:
    """Yields the offset of each replica that is online, from INFO's section `replication`."""
    for number in range(int(replication.get("connected_slaves", 0))):
        replica = replication.get(f"slave{number}")
        if isinstance(replica, Mapping) and replica.get("state") == "online":
            yield int(replica.get("offset", 0))
