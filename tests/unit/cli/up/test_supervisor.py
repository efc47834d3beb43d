from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from kcm import errors
from kcm.cli.up import ready
from kcm.cli.up.children import Child, ProcessSpec
from kcm.cli.up.command import Tail
from kcm.cli.up.folder import StateFolder
from kcm.cli.up.supervisor import UpSupervisor


class Recorder:
    def __init__(self) -> None:
        self.lines: list[str] = []

    def __call__(self, text: str) -> None:
        self.lines.append(text)


@pytest.fixture
def recorder() -> Recorder:
    return Recorder()


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[StateFolder]:
    folder = StateFolder(tmp_path / "s")
    folder.claim()
    yield folder
    folder.release()


@pytest.fixture
def supervisor(folder: StateFolder, recorder: Recorder) -> Iterator[UpSupervisor]:
    supervisor = UpSupervisor(folder, recorder)
    yield supervisor
    supervisor.stop()


def spec(folder: StateFolder, name: str, program: str, stage: int = 0) -> ProcessSpec:
    command = (sys.executable, "-c", program)
    return ProcessSpec(name, command, folder.path / "log" / f"{name}.log", stage)


def wait(child: Child) -> None:
    assert isinstance(child.process, subprocess.Popen)  # not a module, so not a fork
    child.process.wait(10)


WAIT = "import threading; threading.Event().wait(60)"


def test_a_child_that_ends_is_started_again_after_a_pause_that_grows(
    supervisor: UpSupervisor, folder: StateFolder, recorder: Recorder
) -> None:
    child = supervisor.add(spec(folder, "worker", "raise SystemExit(3)"))
    pauses = []
    for _ in range(3):
        wait(child)
        supervisor.look()
        pauses.append(recorder.lines[-1])
        child.due = 0.0
        supervisor.look()
    assert [line.partition("restarting it in ")[2].partition(" s")[0] for line in pauses] == [
        "0.5", "1", "2",
    ]  # fmt: skip
    assert pauses[0].startswith("worker exited (exit code 3)")
    assert child.restarts == 3


def test_an_end_while_starting_is_an_error_with_the_logs_end(
    supervisor: UpSupervisor, folder: StateFolder
) -> None:
    child = supervisor.add(spec(folder, "beat", "raise SystemExit('a setting is wrong')"))
    wait(child)
    with pytest.raises(errors.KcmError, match=r"(?s)beat exited.*a setting is wrong"):
        supervisor.require_alive()


def test_stopping_ends_the_stages_in_order(supervisor: UpSupervisor, folder: StateFolder) -> None:
    first = supervisor.add(spec(folder, "worker", WAIT))
    last = supervisor.add(spec(folder, "redis", WAIT, stage=1))
    pids = [first.pid, last.pid]
    supervisor.stop()
    assert not any(psutil.pid_exists(pid) for pid in pids)


def test_the_folder_belongs_to_one_up_at_a_time(folder: StateFolder) -> None:
    with pytest.raises(errors.ConfigurationError, match=f"pid {os.getpid()}"):
        StateFolder(folder.path).claim()


def test_leftovers_are_ended_but_never_a_stranger_with_their_pid(
    folder: StateFolder,
) -> None:
    child = Child(spec(folder, "worker", WAIT))
    child.start(0.0)
    folder.record([child])
    record = folder.path / "run" / "up.json"
    genuine = record.read_text()
    record.write_text(genuine.replace('"created": ', '"created": 1'))
    assert folder.stop_leftovers() == []
    record.write_text(genuine)
    assert folder.stop_leftovers() == [f"worker (pid {child.pid})"]
    wait(child)


@pytest.mark.parametrize("text", ["", "{", "[]", '{"children": [1, {}]}', '{"children": null}'])
def test_a_damaged_record_names_no_leftovers(folder: StateFolder, text: str) -> None:
    (folder.path / "run" / "up.json").write_text(text)
    assert folder.stop_leftovers() == []


def test_logs_are_private_and_told_line_by_line(
    supervisor: UpSupervisor, folder: StateFolder, recorder: Recorder
) -> None:
    child = supervisor.add(spec(folder, "beat", "print('one'); print('two', end='')"))
    wait(child)
    tail = Tail([child], recorder)
    tail.look()
    tail.look()
    assert recorder.lines == ["    beat | one"]
    assert child.spec.log.stat().st_mode & 0o777 == 0o600


def test_a_log_that_grew_too_large_is_turned_over(
    folder: StateFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kcm.cli.up.children.LARGEST_LOG", 10)
    child = Child(spec(folder, "beat", ""))
    child.spec.log.write_text("x" * 11)
    child.rotate_log()
    assert child.spec.log.read_text() == ""
    assert child.spec.log.with_name("beat.log.1").read_text() == "x" * 11


def test_waiting_gives_up_with_a_name() -> None:
    with pytest.raises(errors.KcmError, match="Flower did not become ready"):
        ready.wait_for(lambda: False, 0.0, "Flower", lambda: False)
    assert ready.wait_for(lambda: False, 9.0, "Flower", lambda: True) is False
