"""What simulated containers write."""

from __future__ import annotations

import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from kcm.api.core_v1 import Container, Pod
from kcm.apimachinery.durations import FOREVER
from kcm.simulation.scripting import output, scripts
from kcm.simulation.scripting.output import MOST_LINES, OutputRun, find_run, list_lines
from kcm.simulation.scripting.script_lines import ScriptLine, add_line, parse_log
from tests.typed_objects import decode_as

START = datetime(2026, 1, 1, tzinfo=UTC)
STARTED = "0 container main started (simulated), attempt 0"


def at(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


def run(
    log: str = "", *, ends: float | None = None, ready: float = 0.0, **fields: Any
) -> OutputRun:
    body = {"spec": {"containers": [{"name": "main", "image": "i", **fields}]}}
    container: Container = decode_as(Pod, body).spec.containers[0]
    ended = None if ends is None else at(ends)
    return OutputRun(container, 0, START, ended, 1, "Error", ready, parse_log(log))


def written(given: OutputRun, since: float | None = None, until: float = 100.0) -> list[str]:
    """Returns lines with the seconds since the start before them."""
    lines = list_lines(given, None if since is None else at(since), at(until))
    return [f"{(when - START).total_seconds():g} {text}" for when, text in lines]


PROBE = {"httpGet": {"port": 80}, "periodSeconds": 5}
SLOW = {"httpGet": {"port": 80}, "periodSeconds": 4, "initialDelaySeconds": 3}


@pytest.mark.parametrize(
    ("given", "since", "until", "expected"),
    [
        (run(), None, 100, [STARTED]),
        (run(), 0, 100, []),
        (run(ends=7), None, 100, [STARTED, "7 container main exited with code 1 (Error)"]),
        (run(ends=7), None, 6, [STARTED]),
        (run("hello\nafter 3s: later\nevery 2s: tick"), None, 5,
         [STARTED, "0 hello", "2 tick", "3 later", "4 tick"]),
        (run("every 2s: tick", ends=5), 3, 9,
         ["4 tick", "5 container main exited with code 1 (Error)"]),
        (run(readinessProbe=PROBE, ready=5), None, 7,
         [STARTED, "1 readiness probe failed", "6 readiness probe succeeded"]),
        (run(readinessProbe=PROBE, ready=FOREVER), None, 7,
         [STARTED, "1 readiness probe failed", "6 readiness probe failed"]),
        (run(livenessProbe=SLOW), None, 8,
         [STARTED, "3 liveness probe succeeded", "7 liveness probe succeeded"]),
    ],
)  # fmt: skip
def test_a_line_for_each_start_probe_and_end_and_what_the_script_says(
    given: OutputRun, since: float | None, until: float, expected: list[str]
) -> None:
    assert written(given, since, until) == expected


def test_pieces_of_a_log_are_the_whole_log() -> None:
    given = run("a\nevery 0.3s: tick", readinessProbe=PROBE, ends=9.5)
    pieces = [written(given, None, 0)]
    pieces += [written(given, half / 2, half / 2 + 0.5) for half in range(30)]
    assert [line for piece in pieces for line in piece] == written(given)


def test_a_log_of_years_is_read_in_a_moment() -> None:
    given = run("\n".join(f"every 0.1s: {number}" for number in range(100)))
    began = time.process_time()
    lines = list_lines(given, None, at(3e7))
    assert time.process_time() - began < 2
    assert len(lines) <= MOST_LINES
    assert lines[-1][0] > at(3e7 - 1)


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("", ()),
        ("one\ntwo", (ScriptLine("one"), ScriptLine("two"))),
        ("after 1m: late", (ScriptLine("late", after=60.0),)),
        ("every 2s: tick", (ScriptLine("tick", after=2.0, every=2.0),)),
        ("after all: words", (ScriptLine("after all: words"),)),
        ("at 2026-01-01T00:00:07Z: a: b", (ScriptLine("a: b", at=at(7)),)),
        ("at noon: words", (ScriptLine("at noon: words"),)),
    ],
)
def test_scripts_are_read_line_by_line(text: str, lines: tuple[ScriptLine, ...]) -> None:
    assert parse_log(text) == lines


def test_a_line_at_a_time_is_of_the_attempt_that_ran_then() -> None:
    log = add_line(add_line("first", "then", at(7.25)), "too late", at(99))
    assert written(run(log, ends=7.0)) == [
        "0 container main started (simulated), attempt 0", "0 first", "7.25 then",
        "7 container main exited with code 1 (Error)",
    ]  # fmt: skip
    assert written(run(add_line("", "before", at(-5)))) == [
        "0 container main started (simulated), attempt 0"
    ]


def test_of_too_many_lines_the_oldest_are_dropped() -> None:
    log = "\n".join(f"line {number}" for number in range(100))
    assert [one.text for one in parse_log(add_line(log, "new", at(1)))][::99] == ["line 1", "new"]
    with pytest.raises(ValueError, match="must be one line"):
        add_line(log, "two\nlines", at(1))


@pytest.mark.parametrize("text", ["every 0s: x", "every 0.01s: x", "x\n" * 101])
def test_a_script_that_writes_too_much_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="must"):
        parse_log(text)
    _, faults = scripts.of_pod({f"{scripts.PREFIX}log": text}, scripts.NO_SCRIPT)
    assert len(faults) == 1


def pod(state: dict[str, Any], last: dict[str, Any] | None = None, restarts: int = 0) -> Pod:
    status = {"name": "main", "state": state, "lastState": last or {}, "restartCount": restarts}
    return decode_as(Pod, {
        "metadata": {"name": "p", "uid": "u", "annotations": {f"{scripts.PREFIX}log": "hi"}},
        "spec": {"containers": [{"name": "main", "image": "i"}]},
        "status": {"containerStatuses": [status]},
    })  # fmt: skip


RUNNING = {"running": {"startedAt": "2026-01-01T00:00:09Z"}}
ENDED = {"terminated": {"exitCode": 3, "reason": "Error", "startedAt": "2026-01-01T00:00:01Z",
                        "finishedAt": "2026-01-01T00:00:05Z"}}  # fmt: skip
WAITING = {"waiting": {"reason": "ContainerCreating"}}


@pytest.mark.parametrize(
    ("shown", "previous", "number", "code"),
    [
        (pod(RUNNING), False, 0, 0), (pod(RUNNING, ENDED, 1), False, 1, 0),
        (pod(RUNNING, ENDED, 1), True, 0, 3), (pod(ENDED), False, 0, 3),
        (pod(WAITING, ENDED, 2), False, 1, 3), (pod(WAITING), False, None, 0),
        (pod(RUNNING), True, None, 0),
    ],
)  # fmt: skip
def test_the_status_says_which_attempts_there_were(
    shown: Pod, previous: bool, number: int | None, code: int
) -> None:
    container, statuses = shown.spec.containers[0], shown.status.container_statuses or []
    found = find_run(shown, container, statuses[0], previous=previous)
    assert (found.number if found else None) == number
    if found is not None:
        assert (found.exit_code, found.lines) == (code, (ScriptLine("hi"),))
    assert output.find_run(shown, container, None) is None


def test_a_program_writes_all_that_is_in_its_log() -> None:
    lines = ((at(0), "one"), (at(0), "two"), (at(5), "three"))
    given = replace(run("not this", ends=5, readinessProbe=PROBE), written=lines)
    assert written(given) == ["0 one", "0 two", "5 three"]
    assert written(given, since=0) == ["5 three"]
    assert written(given, until=4) == ["0 one", "0 two"]
    assert output.list_rest(given, at(7), at(9)) == []


def test_what_a_program_wrote_is_found_however_late_it_is_stored() -> None:
    scripted, program = run("hello"), replace(run(), written=())
    assert scripted.last_seen(list_lines(scripted, None, at(3)), at(3)) == at(3)
    assert program.last_seen([], at(3)) < START
    assert program.last_seen([(at(1), "one"), (at(2), "two")], at(3)) == at(2)
