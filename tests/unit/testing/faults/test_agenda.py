from __future__ import annotations

from datetime import UTC, datetime, timedelta

from kcm.testing.faults.agenda import Agenda

START = datetime(2026, 1, 1, tzinfo=UTC)


def test_an_empty_agenda_has_nothing_to_do() -> None:
    assert Agenda().step(START) is None


def test_the_earliest_of_all_steps_is_next_and_removed_ones_do_not_run() -> None:
    agenda, seen = Agenda(), []

    def often(now: datetime) -> datetime:
        seen.append("often")
        return now + timedelta(seconds=1)

    def once(now: datetime) -> None:
        seen.append("once")

    agenda.add(once)
    agenda.add(often)
    assert agenda.step(START) == START + timedelta(seconds=1)
    agenda.remove(often)
    agenda.remove(often)
    assert agenda.step(START) is None
    assert seen == ["once", "often", "once"]


def test_a_step_may_remove_itself() -> None:
    agenda = Agenda()

    def last(now: datetime) -> None:
        agenda.remove(last)

    agenda.add(last)
    agenda.step(START)
    assert agenda.step(START) is None
