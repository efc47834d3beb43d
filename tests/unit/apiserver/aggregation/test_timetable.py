"""When work on APIs is due."""

from __future__ import annotations

from kcm.apiserver.aggregation.timetable import Timetable


def test_what_is_due_comes_in_its_order() -> None:
    due = Timetable()
    for name, at in (("late", 30.0), ("early", 10.0), ("now", 0.0)):
        due.set(name, at)
    assert [due.pop(20.0) for _ in range(3)] == ["now", "early", None]
    assert due.next_at() == 30.0
    assert due.pop(30.0) == "late"
    assert due.next_at() is None


def test_a_new_moment_replaces_the_old_one() -> None:
    due = Timetable()
    due.set("a", 10.0)
    due.set("a", 0.0)
    due.set("b", 5.0)
    due.remove("b")
    assert [due.pop(20.0), due.pop(20.0)] == ["a", None]


def test_moments_that_were_replaced_take_no_room() -> None:
    due = Timetable()
    for number in range(10_000):
        due.set("a", float(number))
    assert len(due._heap) < 200
    assert due.pop(9_999.0) == "a"
