"""Containers of the process runtime: starting, stopping, exits and removal."""

from __future__ import annotations

import errno
import os
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from kcm.errors import (
    ContainerNotFound,
    ContainerRuntimeError,
    HostPortTaken,
    SandboxNotFound,
)
from kcm.kubelet.cri import (
    Mount,
    PortMapping,
    Resources,
    RuntimeContainerState,
    SandboxState,
)
from kcm.kubelet.runtime.process import held
from kcm.testing.waiting import until
from tests.integration.kubelet.runtimes import (
    MOST_OF_A_SUPERVISOR,
    RealRuntime,
    groups_with,
    is_alive,
    memory,
)

MEBIBYTE = 1024 * 1024

# Makes a daemon as daemons are made: two forks, a session of its own, no way back.
DAEMON = """
import os, sys, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        with open(sys.argv[1], "w") as file:
            file.write(str(os.getpid()))
        time.sleep(1000)
    os._exit(0)
os.wait()
while not (os.path.exists(sys.argv[1]) and os.path.getsize(sys.argv[1])):
    time.sleep(0.01)
"""


@pytest.mark.parametrize(
    ("script", "code", "reason"),
    [
        ("exit 0", 0, "Completed"),
        ("exit 3", 3, "Error"),
        ("kill -TERM $$", 143, "Error"),
        ("kill -KILL $$", 137, "Error"),
    ],
)
def test_the_end_of_the_main_process_is_that_of_the_container(
    real: RealRuntime, script: str, code: int, reason: str
) -> None:
    status = real.wait_for_end(real.shell(script))
    assert (status.exit_code, status.reason) == (code, reason)
    assert status.started_at is not None
    assert status.finished_at is not None
    assert status.created_at <= status.started_at <= status.finished_at


def test_a_created_container_waits_to_be_started(real: RealRuntime) -> None:
    container = real.create("true")
    assert real.status(container).state is RuntimeContainerState.CREATED
    real.runtime.start_container(container)
    assert real.wait_for_end(container).exit_code == 0
    with pytest.raises(ContainerRuntimeError, match="was started before"):
        real.runtime.start_container(container)


def test_a_container_starts_although_its_forerunner_is_removed_meanwhile(
    real: RealRuntime,
) -> None:
    """Both have the same folder for their logs."""
    before = real.shell("true")
    real.wait_for_end(before)
    after = real.create("true", log_path="main/1.log")
    real.runtime.remove_container(before)
    real.runtime.start_container(after)
    assert real.wait_for_end(after).exit_code == 0


def test_a_container_ends_if_the_system_has_no_process_for_it(
    real: RealRuntime, monkeypatch: pytest.MonkeyPatch
) -> None:
    container = real.create("true")

    def refuse(*_: object, **__: object) -> int:
        raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))

    monkeypatch.setattr(os, "posix_spawn", refuse)
    with pytest.raises(ContainerRuntimeError, match="Resource temporarily unavailable"):
        real.runtime.start_container(container)
    status = real.status(container)
    assert (status.exit_code, status.reason) == (128, "StartError")


@pytest.mark.parametrize(
    ("program", "words"),
    [
        ("import os; os.kill(os.getpid(), 9)", "its supervisor was killed"),
        ("raise RuntimeError('no luck')", "its supervisor failed: RuntimeError: no luck"),
    ],
)
def test_a_container_whose_supervisor_dies_first_says_why(
    real: RealRuntime, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, program: str, words: str
) -> None:
    container = real.create("true")
    (tmp_path / "supervisor.py").write_text(program)
    monkeypatch.setattr(held, "SUPERVISOR", tmp_path / "supervisor.py")
    with pytest.raises(ContainerRuntimeError, match=words):
        real.runtime.start_container(container)
    status = real.status(container)
    assert (status.exit_code, status.reason, status.message) == (128, "StartError", words)


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("no-such-program", r'exec: "no-such-program": executable file not found in \$PATH'),
        ("/no/such/program", r'exec: "/no/such/program": no such file or directory'),
        ("/etc/passwd", r'exec: "/etc/passwd": permission denied'),
    ],
)
def test_what_cannot_be_executed_says_why(real: RealRuntime, command: str, words: str) -> None:
    container = real.create(command)
    with pytest.raises(ContainerRuntimeError, match=words):
        real.runtime.start_container(container)
    status = real.status(container)
    assert (status.exit_code, status.reason) == (128, "StartError")
    assert command in status.message


def test_a_container_without_a_command_is_refused(real: RealRuntime) -> None:
    with pytest.raises(ContainerRuntimeError, match="no command specified"):
        real.create()


def test_nothing_of_a_container_survives_its_main_process(
    real: RealRuntime, tmp_path: Path
) -> None:
    pid_file = tmp_path / "daemon"
    script = f"sleep 1000 & python3 -c '{DAEMON}' {pid_file}; echo $!"
    container = real.shell(script)
    real.wait_for_end(container)
    (child,) = real.output(container)
    assert not is_alive(int(child))
    assert not is_alive(int(pid_file.read_text()))


def test_sigterm_comes_first_and_sigkill_when_the_grace_is_over(real: RealRuntime) -> None:
    polite = real.shell("trap 'echo bye; exit 5' TERM; echo up; while :; do sleep 0.01; done")
    real.wait_for_lines(polite, "up")
    real.runtime.stop_container(polite, 30)
    assert real.status(polite).exit_code == 5
    assert real.output(polite)[-1] == "bye"
    deaf = real.shell("trap '' TERM; echo up; sleep 1000", log_path="deaf/0.log")
    real.wait_for_lines(deaf, "up")
    real.runtime.stop_container(deaf, 0.2)
    assert real.status(deaf).exit_code == 137
    real.runtime.stop_container(deaf, 0.2)  # stopped already


def test_a_stop_with_less_grace_shortens_one_that_waits(real: RealRuntime) -> None:
    deaf = real.shell("trap '' TERM; echo up; sleep 1000")
    real.wait_for_lines(deaf, "up")
    waiting = threading.Thread(target=real.runtime.stop_container, args=(deaf, 1000))
    waiting.start()
    real.runtime.stop_container(deaf, 0)
    waiting.join(30)
    assert not waiting.is_alive()
    assert real.status(deaf).exit_code == 137


def test_environment_folder_and_mounts_are_seen(real: RealRuntime, tmp_path: Path) -> None:
    volume = tmp_path / "volume"
    volume.mkdir()
    (volume / "file").write_text("content\n")
    script = 'cat data/file "$KCM_ROOT/data/file"; pwd; echo $NAME $POD_IP "$1"; env | wc -l'
    container = real.start(
        "sh",
        "-c",
        script,
        args=["sh", "$(KCM_ROOT)/data"],
        env=[("NAME", "value of $(POD_IP)")],
        mounts=[Mount(str(volume), "/data")],
    )
    assert real.wait_for_end(container).exit_code == 0
    (sandbox,) = real.runtime.list_pod_sandboxes()
    root = str(real.folder(container) / "root")
    assert real.output(container)[:4] == [
        "content",
        "content",
        root,
        f"value of {sandbox.ip} {sandbox.ip} {root}/data",
    ]
    # PATH HOME HOSTNAME POD_IP KCM_ROOT KCM_CONTAINER_ID NAME, and the shell's PWD.
    assert int(real.output(container)[4]) <= 9


@pytest.mark.parametrize(
    ("policy", "script", "message"),
    [
        ("File", 'echo words > "$KCM_TERMINATION_LOG"; exit 1', "words\n"),
        ("File", "echo words > dev/termination-log; echo log; exit 0", "words\n"),
        ("File", "echo log; exit 1", ""),
        ("FallbackToLogsOnError", "echo first; echo last; exit 1", "first\nlast\n"),
        ("FallbackToLogsOnError", "echo first; exit 0", ""),
    ],
)
def test_the_last_words_are_kept(real: RealRuntime, policy: str, script: str, message: str) -> None:
    container = real.shell(
        script,
        termination_message_path="/dev/termination-log",
        termination_message_policy=policy,
    )
    assert real.wait_for_end(container).message == message


def test_no_trace_is_left_of_what_is_removed(real: RealRuntime) -> None:
    outside = real.root / "outside"
    outside.mkdir()
    (outside / "precious").touch()
    script = f"mkdir closed; touch closed/file; ln -s {outside} link; chmod 0 closed; sleep 1000"
    container = real.shell(script, resources=Resources(memory_bytes=64 * MEBIBYTE))
    until((real.folder(container) / "root" / "link").exists)
    pid, supervisor = real.status(container).pid, real.supervisor(container)
    (sandbox,) = real.runtime.list_pod_sandboxes()
    groups = groups_with(pid) - groups_with(os.getpid())
    real.runtime.remove_pod_sandbox(sandbox.id)
    real.runtime.remove_pod_sandbox(sandbox.id)  # gone already
    real.runtime.remove_container(container)
    assert not is_alive(pid)
    assert not is_alive(supervisor)
    assert not [path for group in groups for path in (group, group.parents[1]) if path.exists()]
    assert (outside / "precious").exists()
    left = {str(path.relative_to(real.root)) for path in real.root.rglob("*")}
    assert left - {"logs"} == {
        "addresses", "addresses/lock", "outside", "outside/precious",
        "run", "run/containers", "run/sandboxes",
    }  # fmt: skip
    with pytest.raises(ContainerNotFound):
        real.status(container)
    with pytest.raises(SandboxNotFound):
        real.create("true")


def test_a_stopped_sandbox_has_no_address_and_starts_nothing(real: RealRuntime) -> None:
    running = real.start("sleep", "1000")
    real.runtime.stop_pod_sandbox(real.sandbox)
    assert real.status(running).exit_code == 137
    (sandbox,) = real.runtime.list_pod_sandboxes()
    assert (sandbox.state, sandbox.ip) == (SandboxState.NOT_READY, "")
    with pytest.raises(ContainerRuntimeError, match="not ready"):
        real.create("true")


def test_every_pod_has_an_address_of_its_own_also_beside_another_kubelet(real: RealRuntime) -> None:
    real.run_sandbox()
    other = RealRuntime(real.root / "other")
    other.options = replace(other.options, addresses=real.options.addresses)
    neighbour = other.reopen()
    other.run_sandbox()
    pods = [*real.runtime.list_pod_sandboxes(), *neighbour.list_pod_sandboxes()[1:]]
    addresses = [sandbox.ip for sandbox in pods]
    assert len(set(addresses)) == 3
    other.close()


def test_pods_of_the_hosts_network_share_its_address_and_not_its_ports(real: RealRuntime) -> None:
    wanted = (PortMapping(container_port=80, host_port=8080),)
    real.run_sandbox(host_network=True, port_mappings=wanted)
    assert real.runtime.list_pod_sandboxes()[1].ip == "127.0.0.1"
    with pytest.raises(HostPortTaken, match="8080/TCP is taken by pod default/pod-2"):
        real.run_sandbox(port_mappings=wanted)


def test_what_a_container_uses_is_counted(real: RealRuntime) -> None:
    container = real.start(
        "python3",
        "-c",
        "x = bytearray(30 << 20); print('up', flush=True); [0 for _ in iter(int, 1)]",
    )
    real.wait_for_lines(container, "up")
    until(lambda: real.runtime.container_stats(container).cpu_nanoseconds > 10_000_000)
    stats = real.runtime.container_stats(container)
    assert stats.memory_working_set_bytes > 30 * MEBIBYTE
    assert stats.processes == 1


def test_a_supervisor_needs_little(real: RealRuntime) -> None:
    container = real.start("sleep", "1000")
    supervisor = real.supervisor(container)
    until(lambda: memory(supervisor) <= MOST_OF_A_SUPERVISOR, "more than 8 MB")
