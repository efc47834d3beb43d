"""What others do in the loop of a control plane, each at its time."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from kcm.testing.control_plane.agenda import NEVER, Agenda

NOON = datetime(2030, 1, 1, 12, tzinfo=UTC)


def test_a_function_is_called_when_it_is_due_and_when_it_asks_for() -> None:
    agenda, calls = Agenda(), []

    def act(now: datetime) -> datetime | None:
        calls.append(now)
        return now + timedelta(hours=1) if len(calls) < 2 else None

    agenda.add("act", NOON, act)
    assert agenda.run_due(NOON.timestamp() - 1) == 0
    assert agenda.run_due(NOON.timestamp()) == 1
    assert agenda.next_due() == NOON.timestamp() + 3600
    assert agenda.run_due(NOON.timestamp() + 3600) == 1
    assert calls == [NOON, NOON + timedelta(hours=1)]
    assert agenda.next_due() == NEVER


def test_a_function_can_remove_itself() -> None:
    agenda = Agenda()

    def act(now: datetime) -> datetime:
        agenda.remove("act")
        return now

    agenda.add("act", NOON, act)
    assert agenda.run_due(NOON.timestamp()) == 1
    assert agenda.due() == {}
