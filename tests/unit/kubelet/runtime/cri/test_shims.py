"""A shim is ended only if it is the runtime's own, has no folder any more, and no process."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from kcm.kubelet.runtime.cri.shims import ShimCollector
from kcm.testing.clock import FakeClock
from kcm.testing.waiting import until

SOCKET = "/run/of-a-test/containerd.sock"
IDLE = "print('up', flush=True); import time; time.sleep(600)"
BUSY = f"import os; os.fork() or os.execvp('sleep', ['sleep', '600']); {IDLE}"
TASKS = "io.containerd.runtime.v2.task/k8s.io"


@contextmanager
def running_shim(
    folder: Path, script: str = IDLE, socket: str = SOCKET, name: str = "containerd-shim-runc-v2"
) -> Iterator[subprocess.Popen[str]]:
    """Runs a process that looks like the shim of a sandbox, in a group of its own."""
    folder.mkdir(parents=True)
    command = [f"/usr/bin/{name}", "-c", script, "-namespace", "k8s.io", "-address", socket]
    with subprocess.Popen(
        command, executable=sys.executable, cwd=folder, stdout=subprocess.PIPE, text=True,
        process_group=0,
    ) as shim:  # fmt: skip
        assert shim.stdout is not None
        assert shim.stdout.readline() == "up\n"
        try:
            yield shim
        finally:
            with suppress(ProcessLookupError):
                os.killpg(shim.pid, signal.SIGKILL)


def test_a_lost_shim_is_ended_when_it_is_seen_a_second_time(tmp_path: Path) -> None:
    collector, folder = ShimCollector(SOCKET, FakeClock()), tmp_path / TASKS / "a"
    with running_shim(folder) as shim:
        assert collector.collect() == collector.collect() == []
        folder.rmdir()
        assert collector.collect() == []
        assert collector.collect() == [shim.pid]
        until(lambda: shim.poll() is not None, "the end of the shim")
        assert collector.collect() == []


@pytest.mark.parametrize(
    ("place", "different"),
    [
        (TASKS, {"script": BUSY}),
        (TASKS, {"socket": "/run/other.sock"}),
        (TASKS, {"name": "my-containerd-shim"}),
        ("of-a-user", {}),
    ],
)
def test_other_processes_are_left_alone(
    tmp_path: Path, place: str, different: dict[str, str]
) -> None:
    collector, folder = ShimCollector(SOCKET, FakeClock()), tmp_path / place / "a"
    with running_shim(folder, **different) as shim:
        folder.rmdir()
        assert [collector.collect() for _ in range(3)] == [[], [], []]
        assert shim.poll() is None
