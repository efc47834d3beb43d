"""The event loop and the link that the tests use."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from kcm.redisio import RedisIO
from kcm.redisio.pipelining import PipelinedIO
from kcm.settings import Settings
from tests.integration.redisio.links import RunLoop, within_patience


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
