"""The simulated cloud over a private server, with a clock that tests step."""

from __future__ import annotations

import pytest

from kcm.reconcile.cloudprovider.sim.provider import SimCloud
from kcm.reconcile.cloudprovider.sim.state import SimState
from kcm.redisio import RedisIO
from kcm.testing.clock import FakeClock


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def state(io: RedisIO) -> SimState:
    return SimState(io)


@pytest.fixture
def cloud(state: SimState, clock: FakeClock) -> SimCloud:
    return SimCloud(state, clock)
