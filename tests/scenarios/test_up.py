"""`kcm up` as a user runs it: one command, real processes."""

from __future__ import annotations

import contextlib
import re
import signal
import socket
import subprocess
import urllib.request

import pytest

from kcm.testing.waiting import until
from tests.ports import free_port
from tests.scenarios.system import ROOT, System, system

__all__ = ["system"]

EXAMPLE = ROOT / "examples" / "01-replicaset" / "web.yaml"
PAGE = ROOT / "examples" / "03-process" / "page.yaml"

pytestmark = pytest.mark.scenario


def test_up_apply_ctrl_c_and_up_again_finds_the_objects(system: System) -> None:
    system.start("--kubelet")
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
    assert system.kcm("delete", "pod", gone).returncode == 0
    until(lambda: len(system.pods()) == 3 and gone not in system.pods(), "a replacement")
    assert "replicaset" in system.kcm("status").stdout
    assert "kubelet" in system.kcm("status").stdout
    assert system.kcm("apply", "-f", str(PAGE)).returncode == 0
    until(lambda: pages(system) == ["A page from a pod"] * 2, "two pods that serve a page")

    system.stop()
    assert system.process is not None
    assert system.process.returncode == 0
    assert system.list_left_processes() == []

    system.start("--kubelet")
    assert "replicaset.apps/web" in system.kcm("get", "rs", "-o", "name").stdout
    assert len(system.pods()) == 3 + 2
    until(lambda: pages(system) == ["A page from a pod"] * 2, "the pages again")


def pages(system: System) -> list[str]:
    """The headings of the pages that pods of this machine serve."""
    headings = []
    for pod in system.items("pods", app="page"):
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
        system.kill(name)
        assert f"{name} exited (signal 9)" in system.text()
    until(lambda: len(system.pods()) == 3, "pods after all restarts")


def test_a_killed_up_leaves_nothing_behind(system: System) -> None:
    system.start()
    system.stop(signal.SIGKILL)
    until(lambda: not system.list_left_processes(), "the watchdog's work")


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
    system.start("-v", "--", "--terminated-pod-gc-threshold=77")
    worker_log = system.folder / "s" / "log" / "worker.log"
    assert '--terminated-pod-gc-threshold="77"' in worker_log.read_text()
    for said in ("Started controllers", "ready.", "Simulating nodes"):
        until(lambda said=said: said in system.text(), said)  # type: ignore[misc]
    lines = system.text().partition("Ctrl-C stops it all")[2].splitlines()
    assert len(lines) < 20, "a start logs only what matters"
