"""Containers outlive the kubelet, and are distinguished from processes that reuse their pids."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import closing
from pathlib import Path

from kcm.kubelet.cri import RuntimeContainerState, StreamOptions
from kcm.kubelet.runtime.process import processes
from kcm.testing.waiting import until
from tests.integration.kubelet.runtimes import RealRuntime, is_alive, numbers

COUNT = "i=0; while :; do i=$((i+1)); echo $i; sleep 0.001; done"

KUBELET = """
import sys, time
from pathlib import Path
from tests.integration.kubelet.runtimes import RealRuntime
real = RealRuntime(Path(sys.argv[1]))
print(real.shell(sys.argv[2]), flush=True)
time.sleep(1000)
"""


def test_a_kubelet_killed_and_started_again_finds_all_running_and_no_line_is_lost(
    tmp_path: Path,
) -> None:
    kubelet = subprocess.Popen(
        [sys.executable, "-c", KUBELET, str(tmp_path), COUNT],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert kubelet.stdout is not None
    container = kubelet.stdout.readline().strip()
    kubelet.kill()
    kubelet.wait()
    kubelet.stdout.close()
    real = RealRuntime(tmp_path)
    before = real.status(container)
    assert before.state is RuntimeContainerState.RUNNING
    assert is_alive(before.pid)
    seen = len(real.output(container))
    until(lambda: len(real.output(container)) > seen + 10)
    assert real.status(container) == before
    assert real.runtime.exec_sync(container, ["echo", "hi"], 10).stdout == b"hi\n"
    real.runtime.stop_container(container, 10)
    written = numbers(real.output(container))
    assert written == list(range(1, len(written) + 1))
    real.close()


def test_what_ends_while_no_kubelet_runs_is_known_afterwards(real: RealRuntime) -> None:
    container = real.shell("read line; exit 7", stdin=True)
    with closing(real.runtime.attach(container, StreamOptions(stdin=True))) as stream:
        assert stream.stdin is not None
        os.write(stream.stdin, b"go\n")
    real.reopen()
    status = real.wait_for_end(container)
    assert status.exit_code == 7
    (listed,) = real.runtime.list_containers()
    assert (listed.id, listed.state) == (container, RuntimeContainerState.EXITED)


def test_a_reused_pid_is_not_mistaken_for_the_supervisor(real: RealRuntime) -> None:
    container = real.start("sleep", "1000")
    supervisor = real.supervisor(container)
    os.kill(supervisor, signal.SIGSTOP)  # so that it does not write its status again
    status = real.folder(container) / "status"
    text = status.read_bytes()
    start = processes.start_of(supervisor)
    status.write_bytes(text.replace(b"supervisor_start=%d" % start, b"supervisor_start=1"))
    container_status = real.reopen().container_status(container)
    assert (container_status.state, container_status.exit_code) == (
        RuntimeContainerState.EXITED,
        137,
    )
    assert is_alive(supervisor)
    os.kill(supervisor, signal.SIGKILL)


def test_a_killed_supervisor_takes_its_container_along(real: RealRuntime) -> None:
    container = real.shell("setsid sleep 1000 & sleep 1000 & echo $!; wait")
    until(lambda: real.output(container))
    pid = real.status(container).pid
    os.kill(real.supervisor(container), signal.SIGKILL)
    status = real.wait_for_end(container)
    assert (status.exit_code, status.reason) == (137, "Error")
    assert "supervisor was killed" in status.message
    assert not processes.with_variable("KCM_CONTAINER_ID", container)
    until(lambda: not is_alive(pid))


def test_signals_to_the_supervisor_reach_the_container(real: RealRuntime) -> None:
    container = real.shell("trap 'exit 9' TERM; echo up; while :; do sleep 0.01; done")
    real.wait_for_lines(container, "up")
    os.kill(real.supervisor(container), signal.SIGTERM)
    assert real.wait_for_end(container).exit_code == 9


def test_a_container_that_was_only_created_can_be_started_by_the_next_kubelet(
    real: RealRuntime,
) -> None:
    container = real.create("sh", "-c", "exit 4")
    real.reopen().start_container(container)
    assert real.wait_for_end(container).exit_code == 4


def test_what_a_kubelet_did_not_finish_making_is_cleared_away(real: RealRuntime) -> None:
    half = real.folder("half")
    (half / "root").mkdir(parents=True)
    assert real.reopen().list_containers() == []
    assert not half.exists()
