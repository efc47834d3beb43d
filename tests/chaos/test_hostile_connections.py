"""Ten rounds of as many hostile connections as a client may have leave no memory behind."""

from __future__ import annotations

from pathlib import Path

import pytest

from kcm.apiserver.http.limits import Limits
from kcm.redisio.embedded import EmbeddedServer
from tests.integration.apiserver.hostile_connections import (
    Opening,
    attacked,
    break_handshake,
    measure_rounds,
    open_idle,
    watch_unread,
)

ROUNDS = 10
KEPT = 2 * 1024  # bytes of each connection, from the third round on
WATCHES = Limits().max_watches_per_user
CONNECTIONS = Limits().max_unauthenticated_connections_per_address


@pytest.mark.chaos
@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    ("opening", "count"),
    [(watch_unread, WATCHES), (break_handshake, CONNECTIONS), (open_idle, CONNECTIONS)],
)
def test_ten_rounds_of_closed_connections_leave_no_memory_behind(
    redis_server: EmbeddedServer, tmp_path: Path, opening: Opening, count: int
) -> None:
    with attacked(redis_server, tmp_path) as server:
        assert measure_rounds(server, opening, count, ROUNDS) < KEPT
