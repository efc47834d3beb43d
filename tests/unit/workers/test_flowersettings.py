"""Flower follows the master that a sentinel announces."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest
from celery import Celery
from flower import events

from kcm.redisio import RedisIO
from workers import flowersettings
from workers.failovers import LINKS


class FakeReceiver:
    """Stands for Celery's receiver of events, which looks at `should_stop` each second."""

    should_stop = False


@pytest.fixture
def app() -> Celery:
    return Celery(broker="memory://", set_as_current=False)


@pytest.fixture
def move(app: Celery, monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Returns what is called when another master was announced."""
    moves: list[Callable[[], None]] = []

    def take(io: RedisIO, on_move: Callable[[], None]) -> tuple[()]:
        assert io.links is LINKS  # those by which new connections are led
        moves.append(on_move)
        return ()

    monkeypatch.setattr(events, "EventReceiver", FakeReceiver)
    monkeypatch.setattr(events, "time", time)
    monkeypatch.setattr(flowersettings, "failover_loops", take)
    monkeypatch.setattr(flowersettings, "current_app", app)
    flowersettings.follow_master()
    return moves[0]


def test_it_receives_events_over_another_connection(move: Callable[[], None]) -> None:
    receivers: list[Any] = [events.EventReceiver(), events.EventReceiver()]
    move()
    assert all(receiver.should_stop for receiver in receivers)
    assert not events.EventReceiver().should_stop


def test_it_asks_workers_over_another_connection(app: Celery, move: Callable[[], None]) -> None:
    with app.pool.acquire() as before:
        before.connect()
    move()
    assert not before.connected


def test_it_tries_again_within_a_second(
    move: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    slept: list[float] = []
    monkeypatch.setattr(time, "sleep", slept.append)
    for seconds in (0.5, 2.0, 64.0):
        events.time.sleep(seconds)
    assert slept == [0.5, 1.0, 1.0]
    assert events.time.monotonic() > 0
