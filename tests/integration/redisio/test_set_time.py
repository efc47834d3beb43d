"""A test can set the time by which all scripts go."""

from __future__ import annotations

import pytest

from kcm.coordination.workqueue import QueueConfig, WorkQueue
from kcm.redisio import RedisIO

YEAR_2030 = 1_893_456_000.0


def test_the_time_stands_still_where_it_was_set(io: RedisIO) -> None:
    io.set_time(YEAR_2030)
    assert io.now() == io.now() == YEAR_2030


def test_the_time_goes_on_ahead_of_the_server(io: RedisIO) -> None:
    before = io.now()
    io.set_time(ahead=3600.0)
    assert before + 3600 <= io.now() < before + 3660


def test_a_delayed_key_waits_for_the_time_that_was_set(io: RedisIO) -> None:
    io.set_time(YEAR_2030)
    queue = WorkQueue(io, "jobs")
    queue.configure(QueueConfig(task="kcm.jobs.sync", broker_queue="core", cap=1))
    queue.add_after("default/nightly", 3600.0)
    io.call("queue_pump", 10, call_id="")
    assert queue.stats().delayed == 1
    io.set_time(YEAR_2030 + 3600)
    io.call("queue_pump", 10, call_id="")
    assert queue.stats().depth == 1


@pytest.mark.parametrize("stranger", ["", "soon", "-5", "+", "9" * 40])
def test_a_time_that_is_none_is_ignored(io: RedisIO, stranger: str) -> None:
    before = io.now()
    io.execute("HSET", io.keys.meta(), "time", stranger)
    assert before <= io.now() < before + 60
    assert WorkQueue(io, "jobs").add("default/now") == 1
