"""A shim is ended only if the runtime has lost it, and if it has no process to look after."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from kcm.errors import ContainerRuntimeError
from kcm.kubelet.runtime.shims import ShimCollector
from kcm.testing.clock import FakeClock
from kcm.testing.waiting import until

SOCKET = f"/run/of-test-{os.getpid()}/containerd.sock"  # tests run in several processes
IDLE = "print('up', flush=True); import time; time.sleep(600)"
# posix_spawn returns when the child runs another program; until then it looks like a shim itself.
BUSY = f"import os; os.posix_spawn('/bin/sleep', ['sleep', '600'], {{}}); {IDLE}"
TASKS = "io.containerd.runtime.v2.task/k8s.io"
OF_CRI = {"annotations": {"io.kubernetes.cri.container-type": "sandbox"}}


def new_collector(*sandboxes: str) -> ShimCollector:
    return ShimCollector(SOCKET, lambda: {*sandboxes}, FakeClock())


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
    collector, folder = new_collector(), tmp_path / TASKS / "a"
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
    collector, folder = new_collector(), tmp_path / place / "a"
    with running_shim(folder, **different) as shim:
        folder.rmdir()
        assert [collector.collect() for _ in range(3)] == [[], [], []]
        assert shim.poll() is None


def test_a_shim_of_a_sandbox_that_is_not_listed_is_ended(tmp_path: Path) -> None:
    folder = tmp_path / TASKS / "a"
    with running_shim(folder) as shim:
        (folder / "config.json").write_text(json.dumps(OF_CRI))
        assert [new_collector("a").collect() for _ in range(2)] == [[], []]
        collector = new_collector("b")
        assert (collector.collect(), collector.collect()) == ([], [shim.pid])


@pytest.mark.parametrize("config", ["", "[]", "{", '{"annotations": {}}', '{"annotations": 1}'])
def test_a_shim_of_no_sandbox_is_left_alone(tmp_path: Path, config: str) -> None:
    collector, folder = new_collector(), tmp_path / TASKS / "a"
    with running_shim(folder) as shim:
        (folder / "config.json").write_text(config)
        assert [collector.collect() for _ in range(3)] == [[], [], []]
        assert shim.poll() is None


def test_no_shim_is_ended_while_the_runtime_does_not_answer(tmp_path: Path) -> None:
    answers: list[set[str] | None] = [set(), None, set()]

    def list_sandboxes() -> set[str]:
        answer = answers.pop(0)
        if answer is None:
            raise ContainerRuntimeError("rpc error: code = Unavailable desc = it is away")
        return answer

    collector, folder = ShimCollector(SOCKET, list_sandboxes, FakeClock()), tmp_path / TASKS / "a"
    with running_shim(folder) as shim:
        (folder / "config.json").write_text(json.dumps(OF_CRI))
        assert [collector.collect() for _ in range(3)] == [[], [], [shim.pid]]
