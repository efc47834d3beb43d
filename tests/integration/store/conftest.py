"""A store on an empty server, with a fake clock."""

from __future__ import annotations

import pytest

from kcm.redisio import RedisIO
from kcm.store import Store
from kcm.testing.clock import FakeClock


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def store(io: RedisIO, clock: FakeClock) -> Store:
    return Store(io, clock)
