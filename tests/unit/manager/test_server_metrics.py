from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from kcm.manager.server_metrics import list_replicas, server_families
from kcm.redisio import RedisIO

ONLINE = {"ip": "10.0.0.2", "port": 6379, "state": "online", "offset": 90, "lag": 0}


@pytest.mark.parametrize(
    ("replication", "offsets"),
    [
        ({}, []),  # a server that says nothing of it
        ({"role": "master", "connected_slaves": 0}, []),
        ({"connected_slaves": 2, "slave0": ONLINE, "slave1": ONLINE | {"offset": 70}}, [90, 70]),
        ({"connected_slaves": 1, "slave0": ONLINE | {"state": "wait_bgsave"}}, []),
        ({"connected_slaves": 1, "slave0": "not parsed"}, []),
    ],
)
def test_replicas_that_are_in_step_are_listed(
    replication: dict[str, Any], offsets: list[int]
) -> None:
    assert list(list_replicas(replication)) == offsets


def test_how_far_the_last_replica_is_behind_is_shown() -> None:
    slaves = {"slave0": ONLINE, "slave1": ONLINE | {"offset": 70}}
    sections: dict[str, dict[str, Any]] = {
        "memory": {"used_memory": 1000, "maxmemory": 4000},
        "replication": {"master_repl_offset": 100, "connected_slaves": 2, **slaves},
    }
    io = cast("RedisIO", SimpleNamespace(info=sections.__getitem__))  # its INFO is asked for
    families = server_families(io, {b"epoch_start": b"7"}, {b"emptied": b"2"})
    assert {family.name: family.samples[0].value for family in families} == {
        "kcm_store_used_memory_bytes": 1000,
        "kcm_store_max_memory_bytes": 4000,
        "kcm_store_replicas": 2,
        "kcm_store_replication_behind_bytes": 30,
        "kcm_store_epoch_start": 7,
        "kcm_store_emptied": 2,
    }
