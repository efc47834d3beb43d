"""Writes and histories as a tester sees them."""

from __future__ import annotations

from typing import Any

import pytest

from kcm.store.writes.observing import Author
from kcm.testing.history.writes import History, Mark
from tests.unit.testing.history.written import START, written

DELETING = {"metadata": {"name": "a", "deletionTimestamp": "2026-01-01T00:00:00Z"}}


@pytest.mark.parametrize(
    ("event", "author", "fields", "verb"),
    [
        ("ADDED", None, {}, "create"),
        ("MODIFIED", None, {}, "update"),
        ("DELETED", None, {}, "delete"),
        ("MODIFIED", None, DELETING, "delete"),
        ("MODIFIED", Author("user", "a", verb="deletecollection"), {}, "deletecollection"),
        ("DELETED", Author("user", "a", verb="patch"), {}, "patch"),
    ],
)
def test_the_verb_is_what_was_asked_for(event: Any, author: Any, fields: Any, verb: str) -> None:
    assert written(1, event, author=author, **fields).verb == verb


@pytest.mark.parametrize(
    ("reported", "resource", "obj", "name"),
    [
        pytest.param(Author("component", "kcm/manager"), "pods", {}, "manager", id="a client"),
        pytest.param(
            Author("component", "kcm-nodes-"), "pods", {"spec": {"nodeName": "node-1"}},
            "kubelet of node-1", id="a pod of a simulated node",
        ),
        pytest.param(
            Author("component", "kcm-nodes-"), "nodes", {}, "kubelet of a", id="the node itself"
        ),
        pytest.param(
            Author("component", "kcm-nodes-"), "pods", {}, "simulated nodes", id="all nodes"
        ),
        pytest.param(
            Author("component", "kcm/manager"), "events",
            {"kind": "Event", "source": {"component": "job-controller"}},
            "job-controller", id="an Event",
        ),
        pytest.param(
            Author("component", "x"), "events",
            {"kind": "Event", "source": {"component": "kubelet", "host": "node-2"}},
            "kubelet of node-2", id="an Event of a kubelet",
        ),
        pytest.param(
            None, "pods",
            {"metadata": {"name": "a", "managedFields": [
                {"manager": "new", "time": "2026-01-02T00:00:00Z"},
                {"manager": "old", "time": "2026-01-01T00:00:00Z"}]}},
            "new", id="nobody reported it",
        ),
        pytest.param(None, "pods", {}, "unknown", id="nobody knows"),
        pytest.param(
            Author("controller", "job-controller", key="n/a"), "events",
            {"kind": "Event", "source": {"component": "other"}},
            "job-controller", id="a controller",
        ),
    ],
)  # fmt: skip
def test_the_author_is(reported: Any, resource: str, obj: Any, name: str) -> None:
    kind = obj.pop("kind", "Pod")
    assert written(1, resource=resource, kind=kind, author=reported, **obj).author.name == name


def test_a_write_is_a_line_with_its_changes_below() -> None:
    write = written(7, data={"x": "2"}, old={"data": {"x": "1"}}, part="status")
    assert str(write).splitlines() == [
        "00:00:07.000       7  patch  configmaps/a/status in n  by alice (kubectl/1.33)",
        '                data.x: "1" → "2"',
    ]


def test_a_timeline_leaves_out_times_that_say_nothing_more() -> None:
    ready = {"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}
    write = written(1, status={"conditions": [ready]})
    assert write.changes[0].path.endswith("lastTransitionTime")
    assert str(write).splitlines()[1:] == [
        '                status.conditions[Ready].status: absent → "True"'
    ]


def test_many_changes_are_counted() -> None:
    write = written(1, data={f"k{number}": "" for number in range(11)})
    assert len(str(write).splitlines()) == 10
    assert str(write).endswith("and 3 more changes")


def test_an_event_says_what_it_tells() -> None:
    about = {"kind": "Pod", "name": "p"}
    event: dict[str, Any] = {
        "type": "Normal",
        "reason": "R",
        "message": "m\x1b",
        "involvedObject": about,
    }
    write = written(1, "ADDED", resource="events", kind="Event", **event)
    assert str(write).endswith("Normal R about Pod p: m\\u001b")


def test_no_author_moves_the_cursor() -> None:
    write = written(1, author=Author("user", "eve", agent="\x1b[2J"))
    assert "\x1b" not in str(write)


def test_marks_stand_between_the_writes() -> None:
    marks = [Mark("first", "note", START, 0), Mark("cut", "fault", START, 2)]
    history = History([written(number) for number in (2, 3, 5)], marks)
    order = [getattr(line, "text", None) or line.resource_version for line in history.lines()]  # type: ignore[union-attr] # a mark has a text
    assert order == ["first", 2, "cut", 3, 5]
    assert "── fault: cut" in str(history)
    assert str(history).startswith("── 2026-01-01\n")


def test_the_last_writes_come_with_the_marks_from_there_on() -> None:
    marks = [Mark("early", "note", START, 1), Mark("late", "note", START, 5)]
    history = History([written(number) for number in (2, 3, 5)], marks, dropped=4)
    last = history.last(1)
    assert [write.resource_version for write in last] == [5]
    assert [mark.text for mark in last.marks] == ["late"]
    assert str(last).startswith("(4 earlier writes of the control plane are not kept)")


def test_a_gap_is_told() -> None:
    assert str(History([], gaps=["pods"])) == "(writes may be missing of: pods)"
    assert str(History([])) == "nothing was written"
