from __future__ import annotations

import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from kcm.cli.up.forks import can_fork

# Runs a module of the folder as a fork, and prints its exit code.
PARENT = """
import os, sys, time
from kcm.cli.up.forks import ForkedProgram, can_fork
command = [sys.executable, "-m", *sys.argv[1:]]
assert can_fork(command)
output = os.open("output.txt", os.O_WRONLY | os.O_CREAT, 0o600)
program = ForkedProgram(command, {"KCM_GIVEN": "yes"}, output)
os.waitid(os.P_PID, program.pid, os.WEXITED | os.WNOWAIT)
print("code", program.poll(), "again", program.poll())
"""

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux forks")


def run_fork(folder: Path, program: str, *arguments: str) -> tuple[str, str]:
    """Returns the exit code that the parent sees, and what the program wrote."""
    (folder / "program.py").write_text(program)
    done = subprocess.run(
        [sys.executable, "-c", PARENT, "program", *arguments],
        cwd=folder, capture_output=True, text=True, check=True,
    )  # fmt: skip
    return done.stdout, (folder / "output.txt").read_text()


def test_a_fork_has_its_own_arguments_environment_and_title(tmp_path: Path) -> None:
    program = """
import os, sys
title = open("/proc/self/cmdline").read().strip("\\0")
print(__name__, sys.argv[1:], os.environ["KCM_GIVEN"], title.partition(" ")[2])
"""
    said, text = run_fork(tmp_path, program, "--flag", "x")
    assert text == "__main__ ['--flag', 'x'] yes -m program --flag x\n"
    assert said == "code 0 again 0\n"


def test_a_fork_leads_a_session_and_has_no_files_or_signal_handlers_of_its_parent(
    tmp_path: Path,
) -> None:
    program = """
import os, signal
assert os.getsid(0) == os.getpgid(0) == os.getpid()
assert len(os.listdir("/proc/self/fd")) == 4  # with that of this listing
assert os.read(0, 1) == b""
assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL
assert not signal.pthread_sigmask(signal.SIG_BLOCK, [])
"""
    assert run_fork(tmp_path, program) == ("code 0 again 0\n", "")


@pytest.mark.parametrize(
    ("program", "code", "text"),
    [
        ("raise SystemExit", 0, ""),
        ("raise SystemExit(3)", 3, ""),
        ("raise SystemExit(256 + 4)", 4, ""),
        ("raise SystemExit('a setting is wrong')", 1, "a setting is wrong"),
        ("1 / 0", 1, "ZeroDivisionError"),
        ("import os; os.kill(os.getpid(), 9)", -signal.SIGKILL, ""),
    ],
)
def test_the_exit_code_is_that_of_a_new_program(
    tmp_path: Path, program: str, code: int, text: str
) -> None:
    said, written = run_fork(tmp_path, program)
    assert said == f"code {code} again {code}\n"
    assert text in written


def test_a_fork_waits_for_its_threads_and_runs_what_is_registered_for_its_end(
    tmp_path: Path,
) -> None:
    program = """
import atexit, threading
atexit.register(print, "the end")
threading.Timer(0.01, print, ["a thread"]).start()
"""
    assert run_fork(tmp_path, program)[1] == "a thread\nthe end\n"


def test_other_programs_than_modules_are_not_forked() -> None:
    assert not can_fork(["/usr/bin/redis-server", "redis.conf"])
    assert not can_fork([sys.executable, "-c", "pass"])


def test_a_process_with_threads_is_not_forked() -> None:
    over = threading.Event()
    thread = threading.Thread(target=over.wait)
    thread.start()
    try:
        assert not can_fork([sys.executable, "-m", "kcm.manager"])
    finally:
        over.set()
        thread.join()
