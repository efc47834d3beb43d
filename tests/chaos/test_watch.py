"""List-then-watch loses nothing in 10,000 interleavings; the suite runs 500 of them."""

from __future__ import annotations

import pytest

from kcm.redisio import RedisIO
from kcm.settings import Settings
from kcm.store import Store
from tests.integration.store.test_watch import test_list_then_watch_loses_nothing as interleavings


@pytest.mark.chaos
@pytest.mark.parametrize("block", range(10))
def test_list_then_watch_loses_nothing_ten_thousand_times(
    io: RedisIO, settings: Settings, block: int
) -> None:
    for seed in range(50):
        io.execute("FLUSHALL")
        interleavings(Store(io), settings, 1000 + block * 50 + seed)
