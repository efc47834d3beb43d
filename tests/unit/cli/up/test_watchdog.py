from __future__ import annotations

import subprocess
import sys

import pytest

from kcm.cli.up import groups
from kcm.cli.up.watchdog import stop_all, watch

STUBBORN = "import signal,threading; signal.signal(15, signal.SIG_IGN); print('up', flush=True); "
WAIT = "threading.Event().wait(60)"


def start(program: str) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", program], start_new_session=True, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    process.stdout.readline()
    return process


def test_a_done_means_that_nothing_is_left_to_do() -> None:
    assert watch(["add 1 0\n", "done\n"]) == {}


def test_an_end_without_done_leaves_the_children_that_were_not_removed() -> None:
    assert watch(["add 1 0\n", "add 2 1\n", "remove 1\n", "rubbish\n"]) == {2: 1}


def test_a_process_that_does_not_listen_is_killed_with_its_group() -> None:
    stubborn = start(STUBBORN + WAIT)
    left = groups.stop([stubborn.pid], 0.2, stubborn.poll)
    assert left == [stubborn.pid]
    assert stubborn.wait(5) == -9
    assert not groups.alive(stubborn.pid)
    with stubborn:
        pass


def test_hurry_ends_the_waiting_at_once() -> None:
    stubborn = start(STUBBORN + WAIT)
    assert groups.stop([stubborn.pid], 60, stubborn.poll, hurry=lambda: True) == [stubborn.pid]
    stubborn.wait(5)
    with stubborn:
        pass


def test_the_guard_ends_what_is_left() -> None:
    program = "import threading; print('up', flush=True); " + WAIT
    processes = [start(program), start(program)]
    stop_all({processes[0].pid: 0, processes[1].pid: 1}, patience=0.1)
    for process in processes:
        assert process.wait(5) < 0
        with process:
            pass


def test_stages_are_stopped_one_after_the_other(monkeypatch: pytest.MonkeyPatch) -> None:
    stopped: list[list[int]] = []
    monkeypatch.setattr(groups, "stop", lambda pids, patience: stopped.append(pids))
    stop_all({1: 2, 2: 0, 3: 2, 4: 1})
    assert stopped == [[2], [4], [1, 3]]
