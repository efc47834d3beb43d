"""`kcm up` as a user runs it: one command, real processes."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from kcm.cli.up import ready

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "01-replicaset" / "web.yaml"
PAGE = ROOT / "examples" / "03-process" / "page.yaml"
KCM = (sys.executable, "-m", "kcm.cli.main")

pytestmark = [pytest.mark.scenario, pytest.mark.timeout(120)]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def until(check: Callable[[], bool], what: str, timeout: float = 20) -> None:
    ready.wait_for(check, timeout, what, lambda: False)


class System:
    """One state folder, and `kcm up` on it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.flower, self.health, self.api = free_port(), free_port(), free_port()
        self.output = folder / "output.txt"
        self.process: subprocess.Popen[bytes] | None = None
        self.seen: set[psutil.Process] = set()

    @property
    def env(self) -> dict[str, str]:
        kept = {name: v for name, v in os.environ.items() if not name.startswith("KCM_")}
        return {**kept, "KCM_STATE_DIR": str(self.folder / "s"), "PYTHONPATH": str(ROOT)}

    def start(self, *extra: str) -> float:
        """Start and wait until it says that it is ready; seconds that took.

        There is a real node only where it is asked for, with `--kubelet`.
        """
        ports = {"flower": self.flower, "health": self.health, "api": self.api}
        flags = (*(f"--{name}-port={port}" for name, port in ports.items()), "--no-kubelet", *extra)
        began = time.monotonic()
        with self.output.open("wb") as out:
            self.process = subprocess.Popen(
                [*KCM, "up", *flags], env=self.env, stdout=out, stderr=out, cwd=self.folder
            )
        until(lambda: "Ctrl-C stops it all" in self.text() or self.ended(), "kcm up", 60)
        took = time.monotonic() - began
        assert not self.ended(), self.text()
        self.seen |= set(psutil.Process(self.process.pid).children(recursive=True))
        return took

    def ended(self) -> bool:
        return self.process is not None and self.process.poll() is not None

    def text(self) -> str:
        return self.output.read_text()

    def stop(self, number: int = signal.SIGINT) -> float:
        """Send a signal and wait for the end; seconds that took."""
        assert self.process is not None
        self.seen |= set(psutil.Process(self.process.pid).children(recursive=True))
        began = time.monotonic()
        self.process.send_signal(number)
        self.process.wait(20)
        return time.monotonic() - began

    def left(self) -> list[psutil.Process]:
        """Processes of ours that still run."""
        return [p for p in self.seen if p.is_running() and p.status() != psutil.STATUS_ZOMBIE]

    def kcm(self, *args: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*KCM, *args], env=self.env, capture_output=True, text=True, check=False
        )

    def pods(self) -> list[str]:
        return self.kcm("get", "pods", "-o", "name").stdout.split()

    def child(self, name: str) -> int:
        record = json.loads((self.folder / "s" / "run" / "up.json").read_text())
        return int(next(c["pid"] for c in record["children"] if c["name"] == name))


@pytest.fixture
def system() -> Iterator[System]:
    folder = Path(tempfile.mkdtemp(prefix="kcm-up-"))
    system = System(folder)
    yield system
    if system.process is not None and not system.ended():
        system.stop(signal.SIGTERM)
    for process in system.left():
        process.kill()
    shutil.rmtree(folder, ignore_errors=True)


def test_up_apply_ctrl_c_and_up_again_finds_the_objects(system: System) -> None:
    took = system.start("--kubelet")
    assert took < 40, "5 s on a quiet machine"
    text = system.text()
    for said in ("redis.sock", f":{system.flower}/", f":{system.health}/metrics", "user kcm"):
        assert said in text

    tries = re.findall(r"^  (KCM_STATE_DIR=\S+ .*)$", text, re.M)
    assert len(tries) == 3
    applied = subprocess.run(
        ["sh", "-c", tries[0]], cwd=system.folder, env=system.env, text=True, capture_output=True,
        check=False,
    )  # fmt: skip
    assert applied.stdout == "replicaset.apps/web created\n", applied.stderr
    until(lambda: len(system.pods()) == 3, "three pods")

    gone = system.pods()[0]
    assert system.kcm("delete", gone).returncode == 0
    until(lambda: len(system.pods()) == 3 and gone not in system.pods(), "a replacement")
    assert "replicaset" in system.kcm("status").stdout
    assert "kubelet" in system.kcm("status").stdout
    assert system.kcm("apply", "-f", str(PAGE)).returncode == 0
    until(lambda: pages(system) == ["A page from a pod"] * 2, "two pods that serve a page", 40)

    assert system.stop() < 8, "5 s on a quiet machine"
    assert system.process is not None
    assert system.process.returncode == 0
    assert system.left() == []

    system.start("--kubelet")
    assert "replicaset.apps/web" in system.kcm("get", "rs", "-o", "name").stdout
    assert len(system.pods()) == 3 + 2
    until(lambda: pages(system) == ["A page from a pod"] * 2, "the pages again", 40)


def pages(system: System) -> list[str]:
    """The headings of the pages that pods of this machine serve."""
    found = json.loads(system.kcm("get", "pods", "-l", "app=page", "-o", "json").stdout)
    headings = []
    for pod in found["items"]:
        with contextlib.suppress(OSError, KeyError):
            url = f"http://{pod['status']['podIP']}:8080/"
            text = urllib.request.urlopen(url, timeout=5).read().decode()
            headings += re.findall("<h1>(.*)</h1>", text)
    return headings


def test_what_dies_is_started_again_and_a_second_up_is_refused(system: System) -> None:
    system.start()
    second = system.kcm("up", "--flower-port=0", "--health-port=0", "--api-port=0")
    assert second.returncode == 1
    assert system.process is not None
    assert "runs already" in second.stderr
    assert f"(pid {system.process.pid})" in second.stderr

    system.kcm("apply", "-f", str(EXAMPLE))
    for name in ("worker", "beat", "redis"):
        before = system.child(name)
        os.kill(before, signal.SIGKILL)
        until(lambda before=before, name=name: system.child(name) != before, name)  # type: ignore[misc] # bound now
        assert f"{name} ended (signal 9)" in system.text()
    until(lambda: len(system.pods()) == 3, "pods after all restarts", 40)


def test_a_killed_up_leaves_nothing_behind(system: System) -> None:
    system.start()
    system.stop(signal.SIGKILL)
    until(lambda: not system.left(), "the guard's work", 15)


def test_a_taken_port_is_named_before_anything_starts(system: System) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        for flag in ("--flower-port", "--redis-port", "--health-port", "--api-port"):
            free = ("--flower-port=0", "--health-port=0", "--api-port=0")
            done = system.kcm("up", *free, f"{flag}={port}")
            assert done.returncode == 1
            assert f"port {port}" in done.stderr
            assert flag in done.stderr
    assert not (system.folder / "s" / "log" / "redis.log").exists()


def test_a_redis_port_comes_with_a_password(system: System) -> None:
    port = free_port()
    system.start(f"--redis-port={port}")
    password = (system.folder / "s" / "redis-password").read_text()
    assert f"127.0.0.1:{port}, password in" in system.text()
    with socket.create_connection(("127.0.0.1", port)) as plain:
        plain.sendall(b"PING\r\n")
        assert b"NOAUTH" in plain.recv(100)
    assert system.kcm("redis-cli", "PING").stdout.strip() == "PONG"
    assert password not in system.text()


def test_wrong_manager_flags_are_refused_and_right_ones_arrive(system: System) -> None:
    refused = system.kcm("up", "--flower-port=0", "--api-port=0", "--", "--no-such-flag=1")
    assert refused.returncode == 1
    assert "no-such-flag" in refused.stderr
    system.start("--", "--terminated-pod-gc-threshold=77")
    worker_log = system.folder / "s" / "log" / "worker.log"
    assert 'FLAG: --terminated-pod-gc-threshold="77"' in worker_log.read_text()
