"""What runs outlives the kubelet, and is told from what only has its pid."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

from kcm.kubelet.cri import ContainerState
from kcm.kubelet.runtime.process import processes
from kcm.testing.waiting import until
from tests.integration.kubelet.box import Box, is_alive, numbers

COUNT = "i=0; while :; do i=$((i+1)); echo $i; sleep 0.001; done"

KUBELET = """
import sys, time
from pathlib import Path
from tests.integration.kubelet.box import Box
box = Box(Path(sys.argv[1]))
print(box.shell(sys.argv[2]), flush=True)
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
    box = Box(tmp_path)
    before = box.status(container)
    assert before.state is ContainerState.RUNNING
    assert is_alive(before.pid)
    seen = len(box.output(container))
    until(lambda: len(box.output(container)) > seen + 10)
    assert box.status(container) == before
    assert box.runtime.exec_sync(container, ["echo", "hi"], 10).stdout == b"hi\n"
    box.runtime.stop_container(container, 10)
    found = numbers(box.output(container))
    assert found == list(range(1, len(found) + 1))
    box.close()


def test_what_ends_while_no_kubelet_runs_is_known_afterwards(box: Box) -> None:
    container = box.shell("read line; exit 7", stdin=True)
    with box.runtime.attach(container, stdin=True) as stream:
        assert stream.stdin is not None
        os.write(stream.stdin, b"go\n")
    box.reopened()
    status = box.end(container)
    assert status.exit_code == 7
    (listed,) = box.runtime.list_containers()
    assert (listed.id, listed.state) == (container, ContainerState.EXITED)


def test_a_reused_pid_is_not_mistaken_for_the_supervisor(box: Box) -> None:
    container = box.start("sleep", "1000")
    supervisor = box.supervisor(container)
    os.kill(supervisor, signal.SIGSTOP)  # so that it does not write its status again
    status = box.folder(container) / "status"
    text = status.read_bytes()
    start = processes.start_of(supervisor)
    status.write_bytes(text.replace(b"supervisor_start=%d" % start, b"supervisor_start=1"))
    found = box.reopened().container_status(container)
    assert (found.state, found.exit_code) == (ContainerState.EXITED, 137)
    assert is_alive(supervisor)
    os.kill(supervisor, signal.SIGKILL)


def test_a_killed_supervisor_takes_its_container_along(box: Box) -> None:
    container = box.shell("setsid sleep 1000 & sleep 1000 & echo $!; wait")
    until(lambda: box.output(container))
    pid = box.status(container).pid
    os.kill(box.supervisor(container), signal.SIGKILL)
    status = box.end(container)
    assert (status.exit_code, status.reason) == (137, "Error")
    assert "supervisor was killed" in status.message
    assert not processes.with_variable("KCM_CONTAINER_ID", container)
    until(lambda: not is_alive(pid))


def test_signals_to_the_supervisor_reach_the_container(box: Box) -> None:
    container = box.shell("trap 'exit 9' TERM; echo up; while :; do sleep 0.01; done")
    box.says(container, "up")
    os.kill(box.supervisor(container), signal.SIGTERM)
    assert box.end(container).exit_code == 9


def test_a_container_that_was_only_created_can_be_started_by_the_next_kubelet(box: Box) -> None:
    container = box.create("sh", "-c", "exit 4")
    box.reopened().start_container(container)
    assert box.end(container).exit_code == 4


def test_what_a_kubelet_did_not_finish_making_is_cleared_away(box: Box) -> None:
    half = box.folder("half")
    (half / "root").mkdir(parents=True)
    assert box.reopened().list_containers() == []
    assert not half.exists()
