"""What acts at moments of the clock."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from kcm.loops import Turn
from kcm.testing.faults.agenda import Agenda

NOON = datetime(2030, 1, 1, 12, tzinfo=UTC)
AT_NOON = NOON.timestamp()


class Clock:
    def __init__(self) -> None:
        self.agenda = Agenda(lambda: self.now)
        self.now = AT_NOON

    def turn(self, later: float = 0.0) -> Turn:
        self.now = AT_NOON + later
        return self.agenda.turn(0.0)


def test_an_empty_agenda_has_nothing_to_do() -> None:
    assert Clock().turn() == Turn()


def test_a_step_is_called_at_once_and_then_when_it_asks_for() -> None:
    clock, calls = Clock(), list[datetime]()

    def act(now: datetime) -> datetime | None:
        calls.append(now)
        return now + timedelta(hours=1) if len(calls) < 2 else None

    clock.agenda.woken.clear()
    clock.agenda.add(act)
    assert clock.agenda.woken.is_set()
    assert clock.turn() == Turn(worked=True, due_in=3600)
    assert clock.turn(3599) == Turn(due_in=1)
    assert clock.turn(3600) == Turn(worked=True)
    assert calls == [NOON, NOON + timedelta(hours=1)]


def test_a_step_can_remove_itself() -> None:
    clock = Clock()

    def last(now: datetime) -> datetime:
        clock.agenda.remove(last)
        return now

    clock.agenda.add(last)
    assert clock.turn() == Turn(worked=True)
    assert clock.turn() == Turn()


def test_a_step_that_is_removed_twice_is_gone() -> None:
    clock = Clock()

    def act(now: datetime) -> None:
        raise AssertionError("it was removed")

    clock.agenda.add(act)
    clock.agenda.remove(act)
    clock.agenda.remove(act)
    assert clock.turn() == Turn()
