"""Tests which entries beat sends at which times, on a clock that the test sets."""

from __future__ import annotations

from typing import Any

import pytest
from celery import Celery

from workers.beat import LOOK_EVERY, LeasedScheduler


class Beat(LeasedScheduler):
    """Beat without a server: a test decides whether it leads, and reads what it has sent."""

    def __init__(self, entries: dict[str, float]) -> None:
        app = Celery(broker="memory://", set_as_current=False)
        app.conf.beat_schedule = {
            name: {"task": f"kcm.{name}", "schedule": every, "args": (0.0,)}
            for name, every in entries.items()
        }
        self.leads = True
        self.resting: set[str] = set()
        self.sent: list[str] = []
        super().__init__(app, lazy=True)
        self.setup_schedule()

    def _check_leading(self) -> bool:
        return self.leads

    def _is_resting(self, loop: str) -> bool:
        return loop in self.resting

    def apply_entry(self, entry: Any, producer: Any = None) -> None:
        self.sent.append(entry.name)


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Gives a list whose only item is the time of the monotonic clock."""
    seconds = [100.0]
    monkeypatch.setattr("workers.beat.time.monotonic", lambda: seconds[0])
    return seconds


def tick(beat: Beat) -> tuple[list[str], float]:
    """Returns the entries that one look sends, and the seconds until the next look."""
    beat.sent = []
    return beat.sent, round(beat.tick(), 6)


def test_entries_are_sent_each_in_its_own_interval(now: list[float]) -> None:
    beat = Beat({"fast": 1.0, "slow": 2.5})
    seen: dict[float, list[str]] = {}
    for step in range(11):
        now[0] = 100.0 + step / 2
        names, _ = tick(beat)
        if names:
            seen[step / 2] = sorted(names)
    assert seen == {
        1.0: ["fast"],
        2.0: ["fast"],
        2.5: ["slow"],
        3.0: ["fast"],
        4.0: ["fast"],
        5.0: ["fast", "slow"],
    }


def test_it_sleeps_until_the_next_is_due_and_no_longer_than_to_the_next_look(
    now: list[float],
) -> None:
    beat = Beat({"fast": 0.25, "slow": 60.0})
    assert tick(beat)[1] == 0.25
    assert tick(Beat({"slow": 60.0}))[1] == LOOK_EVERY
    assert tick(Beat({}))[1] == LOOK_EVERY


def test_the_connection_to_a_former_master_is_left(now: list[float]) -> None:
    beat = Beat({"fast": 1.0})
    producer, connection = beat.producer, beat.connection
    tick(beat)
    assert beat.producer is producer
    beat.has_moved.set()
    tick(beat)
    assert beat.producer is not producer
    assert beat.connection is not connection
    assert not beat.has_moved.is_set()


def test_passes_that_were_missed_are_not_made_up_for(now: list[float]) -> None:
    beat = Beat({"loop": 1.0})
    beat.tick()
    now[0] += 30
    assert tick(beat)[0] == ["loop"]
    now[0] += 0.5
    assert tick(beat)[0] == []


def test_who_takes_over_sends_after_an_interval(now: list[float]) -> None:
    beat = Beat({"loop": 5.0})
    beat.leads = False
    assert tick(beat) == ([], LOOK_EVERY)
    now[0] += 60
    beat.leads = True
    assert tick(beat)[0] == []
    now[0] += 5
    assert tick(beat)[0] == ["loop"]


def test_a_loop_that_rests_is_asked_again_after_its_interval(now: list[float]) -> None:
    beat = Beat({"fast": 1.0})
    tick(beat)
    beat.resting = {"fast"}
    now[0] += 1.0
    assert tick(beat) == ([], 1.0)
    beat.resting = set()
    now[0] += 1.0
    assert tick(beat) == (["fast"], 1.0)
