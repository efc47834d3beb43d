from __future__ import annotations

from typing import Any, cast

import pytest

from kcm import errors
from kcm.coordination.workqueue import Pump, Reaper
from kcm.loops import NEVER, Turn
from kcm.redisio import Keys, RedisIO
from kcm.settings import Settings
from kcm.testing.clock import FakeClock


class Store:
    """Replaces Redis: gives its answers in turn. Blocking calls take their time."""

    keys = Keys()
    settings = Settings(redis_url="redis://nowhere")

    def __init__(self, *answers: list[str] | Exception) -> None:
        self.answers = list(answers)
        self.blocked: list[float] = []
        self.clock = FakeClock()

    def call(self, *_: Any, **__: Any) -> list[str]:
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def execute(self, *command: Any) -> None:
        assert command[:2] == ("BLPOP", "kcm:pump:wake")
        self.blocked.append(command[2])
        self.clock.step(command[2])

    def pump(self, *polling: str) -> Pump:
        return Pump(cast("RedisIO", self), polling=polling, clock=self.clock)


IDLE = ["OK", "1000.000", "0"]


def test_the_pump_blocks_until_the_next_due_time_but_no_longer_than_it_may() -> None:
    store = Store([*IDLE, "q", "1250.000"], [*IDLE, "q", "9000.000"], IDLE, IDLE)
    pump = store.pump()
    for _ in range(4):
        pump.turn(1.0)
    assert store.blocked == [0.25, 1.0, 1.0]


def test_the_pump_does_not_block_where_nothing_may_wait() -> None:
    store = Store(IDLE, IDLE)
    pump = store.pump()
    assert [pump.turn(0.0), pump.turn(0.0)] == [Turn(), Turn()]
    assert store.blocked == []


def test_the_pump_goes_on_at_once_when_more_is_due() -> None:
    store = Store(["OK", "1000.000", "1000", "q", "900.000"], IDLE)
    pump = store.pump()
    assert pump.turn(1.0) == Turn(worked=True, due_in=0.0)
    pump.turn(1.0)
    assert store.blocked == []


def test_keys_that_only_poll_are_upkeep() -> None:
    store = Store([*IDLE, "polls", "2000.000", "q", "5000.000"], [*IDLE, "polls", "2000.000"])
    pump = store.pump("polls")
    assert pump.turn(0.0) == Turn(due_in=4.0, upkeep_in=1.0)
    assert pump.turn(0.0) == Turn(due_in=NEVER, upkeep_in=1.0)


def test_a_pump_that_begins_again_moves_at_once() -> None:
    store = Store([*IDLE, "q", "9000.000"], errors.StoreUnavailable(), IDLE)
    pump = store.pump()
    pump.turn(1.0)
    with pytest.raises(errors.StoreUnavailable):
        pump.turn(1.0)
    pump.begin()
    pump.turn(1.0)
    assert store.blocked == [1.0]


def test_the_reaper_passes_once_per_interval_and_reports_what_it_repaired() -> None:
    store = Store(["OK"], ["OK", "q", "1", "0"], ["OK", "q", "1", "2"])
    reaper = Reaper(cast("RedisIO", store), interval=2.0)
    assert reaper.turn(0.0) == Turn(upkeep_in=2.0)
    assert reaper.turn(0.0) == Turn(worked=True, upkeep_in=2.0)
    assert reaper.once() == {"q": (1, 2)}
