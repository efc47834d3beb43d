from __future__ import annotations

import threading
from typing import Any, cast

from kcm import errors
from kcm.redisio import Keys, RedisIO
from kcm.settings import Settings
from kcm.testing.clock import FakeClock
from kcm.workqueue import Pump, Reaper


class Store:
    """Replaces Redis: gives its answers in turn, and stops the loop with the last one."""

    keys = Keys()
    settings = Settings(redis_url="redis://nowhere")

    def __init__(self, *answers: list[str] | Exception) -> None:
        self.stop = threading.Event()
        self.answers = list(answers)
        self.blocked: list[float] = []

    def call(self, *_: Any, **__: Any) -> list[str]:
        answer = self.answers.pop(0)
        if not self.answers:
            self.stop.set()
        if isinstance(answer, Exception):
            raise answer
        return answer

    def execute(self, *command: Any) -> None:
        assert command[:2] == ("BLPOP", "kcm:pump:wake")
        self.blocked.append(command[2])

    @property
    def io(self) -> RedisIO:
        return cast("RedisIO", self)


LAST = ["OK", "1000.000", "", "0"]


def test_the_pump_blocks_until_the_next_due_time_but_at_most_a_second() -> None:
    store = Store(
        ["OK", "1000.000", "1250.000", "0"],
        ["OK", "1000.000", "9000.000", "2"],
        ["OK", "1000.000", "", "0"],
        ["OK", "1000.000", "900.000", "1000"],
        LAST,
    )
    Pump(store.io, clock=FakeClock()).run(store.stop)
    assert store.blocked == [0.25, 1.0, 1.0]


def test_loops_wait_out_failures_longer_each_time_and_start_over_after_success() -> None:
    down = errors.StoreUnavailable()
    clock = FakeClock()
    store = Store(down, down, down, LAST, down, LAST)
    Pump(store.io, clock=clock).run(store.stop)
    assert round(clock.monotonic(), 3) == 0.1 + 0.2 + 0.4 + 0.1


def test_the_reaper_passes_once_per_interval_and_reports_what_it_repaired() -> None:
    clock = FakeClock()
    store = Store(["OK"], ["OK", "q", "1", "0"], ["OK"])
    Reaper(store.io, interval=2.0, clock=clock).run(store.stop)
    assert clock.monotonic() == 4.0
    store = Store(["OK", "q", "1", "2"])
    assert Reaper(store.io).once() == {"q": (1, 2)}
