"""A store on an empty server, with a fake clock.

Tests about objects run on Redis and on the server in memory that tests of controllers use; those
about Redis are marked `redis_only`.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kcm.redisio import RedisIO
from kcm.settings import Settings
from kcm.store import Store
from kcm.store.memory import MemoryIO
from kcm.testing.clock import FakeClock


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "io" in metafunc.fixturenames:
        only = metafunc.definition.get_closest_marker("redis_only")
        metafunc.parametrize("io", ["redis"] if only else ["redis", "memory"], indirect=True)


@pytest.fixture
def io(request: pytest.FixtureRequest, clock: FakeClock) -> Iterator[RedisIO]:
    if request.param == "memory":
        yield MemoryIO(clock)
        return
    settings: Settings = request.getfixturevalue("settings")
    io = RedisIO(settings)
    io.execute("FLUSHALL")
    io.attach()
    yield io
    io.close()


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def store(io: RedisIO, clock: FakeClock) -> Store:
    return Store(io, clock)
