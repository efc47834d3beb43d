"""The host that steps loops in the order of a list."""

from __future__ import annotations

import pytest

from kcm import errors
from kcm.loops import NEVER, Loop, StepHost, Turn
from tests.unit.loops.loops import NotingLoop, names


class Time:
    def __init__(self) -> None:
        self.now = 1000.0
        self.host = StepHost(lambda: self.now)
        self.notes: list[str] = []

    def add(self, name: str, *turns: Turn | Exception, reads: bool = False) -> NotingLoop:
        loop = NotingLoop(*turns, name=name, reads=reads, notes=self.notes)
        self.host.run(loop)
        return loop

    def turn(self, *, upkeep: bool = False) -> tuple[bool, list[str]]:
        """Takes a turn, and returns whether any loop worked, and which had one."""
        self.notes.clear()
        worked = self.host.turn(upkeep=upkeep)
        return worked, names(self.notes)


def test_each_loop_begins_and_has_a_first_turn_in_the_order_of_the_list() -> None:
    time = Time()
    time.add("a")
    time.add("b")
    assert time.turn() == (False, ["a", "b"])
    assert time.notes == ["a begin", "a turn", "b begin", "b turn"]
    assert time.turn() == (False, [])


def test_turns_never_wait() -> None:
    time = Time()
    loop = time.add("a", reads=True)
    time.turn()
    assert loop.patience == [0.0]


def test_a_loop_that_worked_wakes_those_after_it_and_no_other() -> None:
    time = Time()
    for name, turns in {"a": (), "b": (Turn(), Turn(worked=True)), "c": (), "d": ()}.items():
        loop = time.add(name, *turns)
        if name == "b":
            waking = loop
    time.turn()
    waking.wake()
    assert time.turn() == (True, ["b", "c", "d"])
    assert time.turn() == (False, [])


def test_a_loop_that_reads_has_a_turn_after_any_loop_worked() -> None:
    time = Time()
    time.add("a", reads=True)
    other = time.add("b", Turn(), Turn(worked=True))
    time.turn()
    assert time.turn() == (False, [])
    other.wake()
    assert time.turn() == (True, ["b"])
    assert time.turn() == (False, ["a"])


def test_loops_can_be_put_in_another_order() -> None:
    time = Time()
    loops = [time.add(name) for name in "abc"]
    time.host.arrange(loops[1], loops[0])
    assert time.turn() == (False, ["c", "b", "a"])


def test_a_loop_has_a_turn_when_it_is_due() -> None:
    time = Time()
    time.add("a", Turn(due_in=5.0))
    time.turn()
    assert time.host.next_due(upkeep=False) == 1005.0
    time.now = 1004.0
    assert time.turn() == (False, [])
    time.now = 1005.0
    assert time.turn() == (False, ["a"])
    assert time.host.next_due(upkeep=False) == NEVER


def test_upkeep_is_left_out_unless_it_is_asked_for() -> None:
    time = Time()
    time.add("a", Turn(due_in=9.0, upkeep_in=5.0))
    time.turn()
    assert time.host.next_due(upkeep=False) == 1009.0
    assert time.host.next_due(upkeep=True) == 1005.0
    time.now = 1006.0
    assert time.turn() == (False, [])
    assert time.turn(upkeep=True) == (False, ["a"])


def test_what_a_turn_raises_is_raised_and_the_loop_begins_again() -> None:
    time = Time()
    time.add("a", errors.StoreUnavailable("away"))
    with pytest.raises(errors.StoreUnavailable):
        time.turn()
    assert time.turn() == (False, ["a"])
    assert time.notes == ["a begin", "a turn"]


def test_a_loop_whose_begin_fails_begins_again() -> None:
    failures = [errors.StoreUnavailable("away")]

    class Failing(NotingLoop):
        def begin(self) -> None:
            super().begin()
            if failures:
                raise failures.pop()

    time = Time()
    time.host.run(Failing(name="a", notes=time.notes))
    with pytest.raises(errors.StoreUnavailable):
        time.turn()
    assert time.turn() == (False, ["a"])
    assert time.notes == ["a begin", "a turn"]


def test_a_loop_can_have_a_turn_out_of_order() -> None:
    time = Time()
    time.add("a")
    loop = time.add("b", Turn(worked=True))
    assert time.host.step(loop) == Turn(worked=True)
    assert names(time.notes) == ["b"]


def test_a_loop_without_its_lease_has_no_turn() -> None:
    class Lease:
        held = False

    time, lease = Time(), Lease()
    time.host.run(NotingLoop(name="a", lease=lease, notes=time.notes))
    assert time.turn() == (False, [])
    lease.held = True
    assert time.turn() == (False, ["a"])


def test_work_beside_the_loops_is_done_at_once_and_not_repeated() -> None:
    host, done = StepHost(lambda: 0.0), []
    host.spawn("work", lambda: done.append("spawned"))
    with host.repeat("keeper", 1.0, lambda: done.append("repeated")):
        pass
    assert done == ["spawned"]


def test_a_stop_ends_the_loops_the_last_one_first() -> None:
    time = Time()
    for name in "ab":
        time.add(name)
    time.host.stop()
    assert names(time.notes, "end") == ["b", "a"]
    assert time.turn() == (False, [])


def test_a_loop_without_a_turn_is_not_hidden() -> None:
    host = StepHost(lambda: 0.0)
    host.run(Loop("empty"))
    with pytest.raises(NotImplementedError):
        host.turn(upkeep=False)
