"""Closed connections leave no memory behind. `tests/chaos` has the same with many more."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kcm.redisio.embedded import EmbeddedServer
from kcm.testing.waiting import until
from tests.integration.apiserver.hostile_connections import (
    Attacked,
    Opening,
    attacked,
    break_handshake,
    measure_rounds,
    open_idle,
    watch_unread,
)

ROUNDS = 4
WATCHES, CONNECTIONS = 20, 60
# Bytes of each. It was 66,000 to 1,600,000; of so few connections, chance is a part.
KEPT = 16 * 1024


@pytest.fixture(scope="module")
def server(
    redis_server: EmbeddedServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Attacked]:
    with attacked(redis_server, tmp_path_factory.mktemp("connections")) as running:
        yield running


@pytest.mark.parametrize(
    ("opening", "count"),
    [(open_idle, CONNECTIONS), (break_handshake, CONNECTIONS), (watch_unread, WATCHES)],
)
def test_connections_that_are_closed_leave_no_memory_behind(
    server: Attacked, opening: Opening, count: int
) -> None:
    assert measure_rounds(server, opening, count, ROUNDS) < KEPT


def test_a_watch_that_is_not_read_keeps_a_piece_and_no_object(server: Attacked) -> None:
    before = server.memory()
    watches = [watch_unread(server) for _ in range(WATCHES)]
    assert (server.memory() - before) / WATCHES < 400 * 1024  # two objects are 2 MB
    for watch in watches:
        watch.close()


def test_handshakes_that_fail_are_counted(server: Attacked) -> None:
    before = server.metric("apiserver_tls_handshake_errors_total")
    break_handshake(server).close()
    open_idle(server).close()
    until(
        lambda: server.metric("apiserver_tls_handshake_errors_total") >= before + 2,
        "the end of both",
    )
