from __future__ import annotations

from typing import Any

import pytest

from kcm.manager.server_metrics import list_replicas

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
