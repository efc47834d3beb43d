"""The event loop, the link and the replicated servers that the tests use."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from kcm.redisio import RedisIO
from kcm.redisio.pipelining import PipelinedIO
from kcm.settings import Settings
from tests.integration.redisio.links import RunLoop, within_patience
from tests.integration.redisio.replicas import Replicas, running_replicas


@pytest.fixture
def run_loop() -> RunLoop:
    """Gives a function that runs a coroutine in an event loop of its own."""
    return lambda main: asyncio.run(within_patience(main))


@pytest.fixture
def piped(io: RedisIO, settings: Settings) -> Iterator[PipelinedIO]:
    """Gives the connection under test. It is closed when the event loop has ended."""
    piped = PipelinedIO(settings, name="piped")
    piped.attach()
    yield piped
    piped.close()


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Replicas]:
    """Gives three servers, of which the first was made the master."""
    with running_replicas(tmp_path_factory.mktemp("replicas")) as replicas:
        yield replicas


@pytest.fixture
def replicas(servers: Replicas) -> Replicas:
    """Gives the servers as they were in the beginning: the first one is the empty master."""
    servers.begin()
    return servers
