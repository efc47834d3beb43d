"""A thousand watchers, and copies of reflectors through many restarts of the API server."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from kcm.redisio.embedded import EmbeddedServer
from tests.integration.apiserver.restarting import restartable
from tests.integration.apiserver.test_watch_crowds import FLAGS, watch_in_a_crowd
from tests.integration.apiserver.test_watch_restarts import fuzz_with_restarts


@pytest.mark.chaos
def test_a_thousand_watchers_get_every_write(redis_server: EmbeddedServer, tmp_path: Path) -> None:
    unlimited = ("--max-unauthenticated-connections-per-address=0", "--max-watches-per-user=0")
    with restartable(redis_server, tmp_path, *FLAGS, *unlimited) as server:
        watch_in_a_crowd(server, 1000, 200)


@pytest.mark.chaos
@pytest.mark.parametrize("seed", range(4))
def test_copies_are_what_the_store_has_after_many_restarts(
    redis_server: EmbeddedServer, tmp_path: Path, seed: int
) -> None:
    with restartable(redis_server, tmp_path) as server:
        ends = (signal.SIGKILL, signal.SIGTERM, signal.SIGKILL, signal.SIGKILL, signal.SIGTERM)
        fuzz_with_restarts(server, seed, steps=150, ends=ends)
