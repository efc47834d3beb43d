"""What acts at moments of the clock."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from kcm.testing.faults.agenda import NEVER, Agenda

NOON = datetime(2030, 1, 1, 12, tzinfo=UTC)
AT_NOON = NOON.timestamp()


def test_an_empty_agenda_has_nothing_to_do() -> None:
    agenda = Agenda()
    assert agenda.run_due(AT_NOON) == 0
    assert agenda.next_due() == NEVER


def test_a_step_is_called_at_once_and_then_when_it_asks_for() -> None:
    agenda, calls = Agenda(), list[datetime]()

    def act(now: datetime) -> datetime | None:
        calls.append(now)
        return now + timedelta(hours=1) if len(calls) < 2 else None

    agenda.add(act)
    assert agenda.run_due(AT_NOON) == 1
    assert agenda.next_due() == AT_NOON + 3600
    assert agenda.run_due(AT_NOON + 3599) == 0
    assert agenda.run_due(AT_NOON + 3600) == 1
    assert calls == [NOON, NOON + timedelta(hours=1)]
    assert agenda.next_due() == NEVER


def test_a_step_can_remove_itself() -> None:
    agenda = Agenda()

    def last(now: datetime) -> datetime:
        agenda.remove(last)
        return now

    agenda.add(last)
    assert agenda.run_due(AT_NOON) == 1
    assert agenda.run_due(AT_NOON) == 0


def test_a_step_that_is_removed_twice_is_gone() -> None:
    agenda = Agenda()

    def act(now: datetime) -> None:
        raise AssertionError("it was removed")

    agenda.add(act)
    agenda.remove(act)
    agenda.remove(act)
    assert agenda.run_due(AT_NOON) == 0
