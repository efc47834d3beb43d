"""The recorder: histories by a question, and invariants."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import timedelta

import pytest

from kcm.api.scheme import BUILT_IN
from kcm.store.watch import ChangeType, WatchEntry
from kcm.testing.clock import FakeClock
from kcm.testing.history import journal
from kcm.testing.history.recorder import Recorder
from kcm.testing.history.reports import build_report
from kcm.testing.history.writes import Write


class Recorded:
    """A recorder whose logs the test writes, one second for each write."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        self.recorder = Recorder(self.clock, BUILT_IN)
        self.number = 0

    def write(self, kind: str, key: str, event: ChangeType = "MODIFIED", **fields: object) -> None:
        resource = BUILT_IN.lookup(kind)
        self.number += 1
        self.clock.step(1)
        namespace, _, name = key.rpartition("/")
        obj = {"kind": resource.kind, "metadata": {"name": name, "namespace": namespace}, **fields}
        raw = json.dumps(obj).encode()
        self.recorder.journal.read([WatchEntry(resource, self.number, event, key, raw)])


@pytest.fixture
def recorded() -> Recorded:
    return Recorded()


def numbers(writes: object) -> list[int]:
    return [write.resource_version for write in writes]  # type: ignore[attr-defined] # a history


def test_a_history_answers_a_question(recorded: Recorded) -> None:
    start = recorded.clock.now()
    for kind, key in (("pod", "n/a"), ("pod", "m/a"), ("pod", "n/b"), ("cm", "n/a"), ("node", "a")):
        recorded.write(kind, key)
    history = recorded.recorder.history
    assert numbers(history()) == [1, 2, 3, 4, 5]
    assert numbers(history("po")) == [1, 2, 3]
    assert numbers(history("pods", "a")) == [1, 2]
    assert numbers(history(name="a", namespace="n")) == [1, 4]
    assert numbers(history(namespace="")) == [5]
    assert numbers(history(since=3)) == [4, 5]
    assert numbers(history(since=start + timedelta(seconds=5))) == [5]


def test_marks_are_where_they_were_made(recorded: Recorded) -> None:
    recorded.write("pod", "n/a")
    recorded.recorder.mark("node-1 stopped", "fault")
    recorded.write("pod", "n/a")
    (mark,) = recorded.recorder.history(since=1).marks
    assert (mark.kind, mark.after) == ("fault", 1)
    assert recorded.recorder.history(since=2).marks == ()


def deletes(write: Write) -> bool:
    return write.event == "DELETED"


def breaks(recorded: Recorded) -> str:
    with pytest.raises(AssertionError) as broken:
        recorded.recorder.check()
    return str(broken.value)


def test_an_invariant_is_checked_with_each_write_once(recorded: Recorded) -> None:
    seen = []
    recorded.write("pod", "n/a")

    def notes(write: Write) -> bool:
        seen.append(write.resource_version)
        return False

    recorded.recorder.never(notes, "x")
    for _ in range(2):
        recorded.write("pod", "n/a")
        recorded.recorder.check()
        recorded.recorder.check()
    assert seen == [2, 3]


def test_a_broken_invariant_fails_once_with_what_came_before(recorded: Recorded) -> None:
    recorded.recorder.never(deletes, "no pod is deleted")
    recorded.write("cm", "m/other")
    for _ in range(10):
        recorded.write("pod", "n/a")
    recorded.write("pod", "n/a", "DELETED")
    text = breaks(recorded)
    assert text.startswith("this must not happen: no pod is deleted\n00:00:12.000      12  delete")
    assert [f"{n:>6}  update" in text for n in (2, 3, 4, 11)] == [False, False, True, True]
    assert "other" not in text
    recorded.recorder.check()
    assert recorded.recorder.invariants == ()


def test_it_ends_with_its_block(recorded: Recorded) -> None:
    with recorded.recorder.never(deletes, "x"):
        recorded.write("pod", "n/a")
    recorded.write("pod", "n/a", "DELETED")
    recorded.recorder.check()

    def in_block(after: Callable[[], None]) -> None:
        with recorded.recorder.never(deletes, "y"):
            recorded.write("pod", "n/a", "DELETED")
            after()

    def fail() -> None:
        raise RuntimeError("first")

    with pytest.raises(AssertionError, match="this must not happen: y"):
        in_block(lambda: None)
    with pytest.raises(RuntimeError, match="first"):
        in_block(fail)
    assert recorded.recorder.invariants == ()


def test_writes_that_are_no_longer_kept_cannot_be_checked(recorded: Recorded) -> None:
    recorded.recorder.journal = journal.Journal(recorded.clock, max_writes=10)
    recorded.recorder.never(deletes, "x")
    for _ in range(30):
        recorded.write("pod", "n/a")
    assert breaks(recorded).startswith("it cannot be told whether this happened: x")
    assert recorded.recorder.history().dropped > 0
    assert recorded.recorder.history(since=30).dropped == 0


def test_a_report_has_what_a_namespace_saw_without_what_is_routine(recorded: Recorded) -> None:
    beat = {"conditions": [{"type": "Ready", "lastHeartbeatTime": "1"}]}
    later = {"conditions": [{"type": "Ready", "lastHeartbeatTime": "2"}]}
    recorded.write("pod", "n/early")
    recorded.write("node", "node-1", "ADDED", status=beat)
    recorded.write("node", "node-1", status=later)
    recorded.write("lease", "n/l")
    recorded.write("namespace", "n")
    recorded.write("namespace", "m")
    recorded.write("pod", "n/a")
    recorded.write("pod", "m/a")
    recorded.write("pv", "v", spec={"claimRef": {"namespace": "n"}})
    recorded.write("pv", "w")
    own = build_report(recorded.recorder, "n", since=1)
    assert (numbers(own.history), own.omitted) == ([5, 7, 9], 1)
    every = build_report(recorded.recorder, None, since=1)
    assert (numbers(every.history), every.omitted) == ([2, 5, 6, 7, 8, 9, 10], 2)


def test_the_text_of_a_report_has_the_last_writes(recorded: Recorded) -> None:
    for _ in range(70):
        recorded.write("pod", "n/a")
    text = str(build_report(recorded.recorder, "n", since=0))
    assert text.startswith("(10 earlier or routine writes are left out)")
    assert text.count("update pods/a") == 60
