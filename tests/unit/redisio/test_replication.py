"""Tests how many replicas a write waits for."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Self, cast

import pytest
import redis

from kcm import errors
from kcm.redisio.keys import Keys
from kcm.redisio.replication import MISSED_FOR, ReplicationWait
from kcm.testing.clock import FakeClock


class Master:
    """What is asked of the driver's client: INFO and WAIT, and what is noted on the master."""

    def __init__(self, *states: str) -> None:
        self.states: Sequence[str] = states  # of its replicas
        self.term, self.role = "t1", "master"
        self.waited: list[int] = []
        self.has_written = False
        self.noted: tuple[bytes, float] | None = None  # until when, on the test's clock
        self.clock = FakeClock()

    def execute_command(self, *command: Any) -> Any:
        if command[0] == "GET":
            is_there = self.noted is not None and self.clock.monotonic() < self.noted[1]
            return self.noted[0] if self.noted is not None and is_there else None
        if command[0] == "SET" and "PX" in command:
            until = self.clock.monotonic() + command[4] / 1000
            self.noted = command[2].encode(), until
            return b"OK"
        if command[0] == "SET":
            self.has_written = True
        if command[0] == "WAIT":
            assert self.has_written  # later servers than Redis 7.0 wait for the client's own writes
            self.has_written = False
            self.waited.append(command[1])
            return self.states.count("online")
        replicas = "".join(
            f"slave{n}:ip=10.0.0.{n},port=6379,state={state},offset=1,lag=0\r\n"
            for n, state in enumerate(self.states)
        )
        text = f"# Replication\r\nrole:{self.role}\r\n{replicas}master_replid:{self.term}\r\n"
        return text.encode()

    def pipeline(self, transaction: bool) -> _Pipeline:
        return _Pipeline(self)


class _Pipeline:
    def __init__(self, master: Master) -> None:
        self._master, self._commands = master, list[tuple[Any, ...]]()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None: ...

    def execute_command(self, *command: Any) -> None:
        self._commands.append(command)

    def execute(self) -> list[Any]:
        return [self._master.execute_command(*command) for command in self._commands]


def waiting(master: Master, clock: FakeClock | None = None) -> ReplicationWait:
    client = cast("redis.Redis", master)
    master.clock = clock or master.clock
    return ReplicationWait(client, Keys(), 1, 2.0, master.clock)


def test_all_replicas_in_step_must_have_a_write() -> None:
    master = Master("online", "online", "wait_bgsave")
    waiting(master).confirm("t1")
    assert master.waited == [2]


def test_without_replicas_the_least_number_is_waited_for() -> None:
    master = Master()
    with pytest.raises(errors.NotReplicated, match="0 of 1 replicas had it after 2 s"):
        waiting(master).confirm("t1")


def test_a_replica_that_left_is_missed_for_some_seconds() -> None:
    clock, master = FakeClock(), Master("online", "online")
    wait = waiting(master, clock)
    wait.confirm("t1")
    master.states = ["online"]
    clock.step(MISSED_FOR - 1)
    with pytest.raises(errors.NotReplicated, match="1 of 2 replicas"):
        wait.confirm("t1")
    clock.step(2)
    wait.confirm("t1")
    assert master.waited == [2, 2, 1]


def test_a_process_that_has_just_come_misses_what_others_have_seen() -> None:
    clock, master = FakeClock(), Master("online", "online")
    waiting(master, clock).confirm("t1")
    master.states = ["online"]
    clock.step(MISSED_FOR - 1)
    with pytest.raises(errors.NotReplicated, match="1 of 2 replicas"):
        waiting(master, clock).confirm("t1")
    clock.step(2)
    waiting(master, clock).confirm("t1")
    assert master.waited == [2, 2, 1]


def test_replicas_are_noted_in_a_quiet_time_too() -> None:
    clock, master = FakeClock(), Master("online", "online")
    waiting(master, clock).observe()
    master.states = ["online"]
    with pytest.raises(errors.NotReplicated, match="1 of 2 replicas"):
        waiting(master, clock).confirm("t1")


def test_a_note_of_a_former_term_counts_no_more() -> None:
    clock, master = FakeClock(), Master("online", "online")
    waiting(master, clock).observe()
    master.states, master.term = ["online"], "t2"
    waiting(master, clock).confirm("t2")
    assert master.waited == [1]


@pytest.mark.parametrize("note", [b"", b"\xff 2", b"t1", b"t1 many", b"t1 -1"])
def test_a_note_that_is_none_counts_nothing(note: bytes) -> None:
    master = Master("online", "online")
    master.noted = note, 60.0
    waiting(master).confirm("t1")
    assert master.waited == [2]


def test_another_master_has_replicas_of_its_own() -> None:
    master = Master("online", "online")
    wait = waiting(master)
    wait.confirm("t1")
    master.states, master.term = ["online"], "t2"
    wait.confirm("t2")
    assert master.waited == [2, 1]


def test_who_comes_back_to_a_former_master_misses_the_replica_that_was_promoted() -> None:
    master = Master("online", "online")
    wait = waiting(master)
    wait.confirm("t1")
    master.states, master.term = [], "t2"  # the promoted one, which has no replica yet
    with pytest.raises(errors.NotReplicated):
        wait.confirm("t1")
    master.states, master.term = ["online"], "t1"
    with pytest.raises(errors.NotReplicated, match="1 of 2 replicas"):
        wait.confirm("t1")


@pytest.mark.parametrize(("term", "role"), [("t2", "master"), ("t1", "slave")])
def test_a_write_is_not_confirmed_by_another_term(term: str, role: str) -> None:
    master = Master("online")
    master.term, master.role = term, role
    with pytest.raises(errors.NotReplicated, match="another server is the master now"):
        waiting(master).confirm("t1")


class BusyMaster(Master):
    """Its first WAIT lasts until it is let go."""

    def __init__(self, *states: str) -> None:
        super().__init__(*states)
        self.asked, self.goes = threading.Event(), threading.Event()

    def execute_command(self, *command: Any) -> Any:
        if command[0] == "WAIT" and not self.asked.is_set():
            self.asked.set()
            assert self.goes.wait(60)
        return super().execute_command(*command)


def test_writes_during_a_wait_are_confirmed_by_a_later_one() -> None:
    master = BusyMaster("online")
    waits = waiting(master)
    calling = threading.Semaphore(0)

    def confirm() -> None:
        calling.release()
        waits.confirm("t1")

    with ThreadPoolExecutor(3) as pool:
        first = pool.submit(confirm)
        assert master.asked.wait(60)
        others = [pool.submit(confirm) for _ in range(2)]
        for _ in range(3):
            assert calling.acquire(timeout=60)
        master.goes.set()
        for each in (first, *others):
            each.result(60)
    assert len(master.waited) in (2, 3)  # one more for both, unless the third came late
