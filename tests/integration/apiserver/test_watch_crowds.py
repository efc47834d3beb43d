"""Many watchers of one kind, and watchers that do not read, while objects are written."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from kcm.redisio.embedded import EmbeddedServer
from kcm.testing.waiting import until, until_on_loop
from tests.integration.apiserver.crowds import Crowd, connect_sleepers, descriptors, memory
from tests.integration.apiserver.restarting import RestartableServer, restartable

WATCHERS, WRITES = 60, 50
SLEEPERS, LARGE_OBJECTS, LARGE = 20, 60, 200_000  # watchers, objects, bytes in each
FLAGS = ("--no-tls", "--anonymous-auth", "--authorization-mode", "AlwaysAllow")
PATH = "/api/v1/namespaces/default/configmaps"


@pytest.fixture
def server(
    redis_server: EmbeddedServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RestartableServer]:
    with restartable(redis_server, tmp_path_factory.mktemp("crowds"), *FLAGS) as running:
        yield running


def test_every_watcher_gets_every_write_and_leaves_nothing_behind(
    server: RestartableServer,
) -> None:
    watch_in_a_crowd(server, WATCHERS, WRITES)


def watch_in_a_crowd(server: RestartableServer, watchers: int, writes: int) -> None:
    """Fails unless each watcher gets each write once, and the server then has as many descriptors
    as before and no more than 100 KiB of memory for each watcher.
    """
    assert server.process is not None
    pid = server.process.pid
    asyncio.run(_watch(server, 2, 2, 0))  # the first watch loads what later ones share
    before, used = descriptors(pid), memory(pid)
    asyncio.run(_watch(server, watchers, writes, 2))
    until(lambda: descriptors(pid) <= before + 2, "the end of the connections")
    assert memory(pid) - used < 20 + watchers / 10


async def _watch(server: RestartableServer, watchers: int, writes: int, present: int) -> None:
    crowd = Crowd(server.port)
    await crowd.join(watchers)
    await asyncio.to_thread(_create, server, present, writes)
    wanted = [present + writes] * watchers
    await until_on_loop(lambda: crowd.events == wanted, "every event at every watcher")
    await crowd.leave()


def _create(server: RestartableServer, first: int, count: int) -> None:
    with server.client() as api:
        for number in range(first, first + count):
            made = api.post(PATH, json={"metadata": {"name": f"c{number}"}}, timeout=30)
            assert made.status_code == 201, made.text


def test_watchers_that_do_not_read_cost_a_chunk_each(server: RestartableServer) -> None:
    assert server.process is not None
    pid = server.process.pid
    with server.client() as api:
        for number in range(LARGE_OBJECTS):
            body = {"metadata": {"name": f"l{number}"}, "data": {"d": "x" * LARGE}}
            assert api.post(PATH, json=body).status_code == 201
        before, used = descriptors(pid), memory(pid)
        sleepers = connect_sleepers(server.port, SLEEPERS)
        until(lambda: _watching(api.get("/metrics").text) == SLEEPERS, "the watches")
        # All of their present objects are 240 MB.
        assert memory(pid) - used < 60
        assert api.get(f"{PATH}/l0").status_code == 200
        for one in sleepers:
            one.close()
        until(lambda: _watching(api.get("/metrics").text) == 0, "the end of the watches")
        until(lambda: descriptors(pid) < before + SLEEPERS / 2, "the end of the connections")


def _watching(metrics: str) -> int:
    name = "apiserver_longrunning_requests{"
    counts = [line for line in metrics.splitlines() if line.startswith(name)]
    return sum(int(float(line.rpartition(" ")[2])) for line in counts if "configmaps" in line)
