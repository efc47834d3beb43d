"""exec, attach and port forwarding."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from kcm.errors import ContainerRuntimeError, ExecTimeout
from kcm.kubelet.runtime.process import processes
from kcm.testing.waiting import until
from tests.integration.kubelet.box import Box, is_alive


@pytest.fixture(scope="module")
def box(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Box]:
    box = Box(tmp_path_factory.mktemp("box"))
    yield box
    box.close()


@pytest.fixture(scope="module")
def sleeper(box: Box) -> str:
    return box.start("sleep", "1000", env=[("NAME", "value")], log_path="sleeper/0.log")


def read_until(fd: int, text: bytes) -> bytes:
    found = b""
    while text not in found:
        try:
            data = os.read(fd, 4096)
        except OSError:  # the end of a terminal
            data = b""
        if not data:
            break
        found += data
    assert text in found
    return found


def test_a_command_runs_with_the_containers_environment_and_folder(box: Box, sleeper: str) -> None:
    result = box.runtime.exec_sync(sleeper, ["sh", "-c", "echo $NAME; pwd >&2; exit 4"], 20)
    root = box.folder(sleeper) / "root"
    assert (result.stdout, result.stderr.decode().strip()) == (b"value\n", str(root))
    assert result.exit_code == 4


def test_all_of_a_large_output_arrives(box: Box, sleeper: str) -> None:
    result = box.runtime.exec_sync(sleeper, ["head", "-c", "3000000", "/dev/zero"], 20)
    assert (len(result.stdout), result.exit_code) == (3_000_000, 0)


def test_a_command_that_takes_too_long_is_killed(box: Box, sleeper: str) -> None:
    with pytest.raises(ExecTimeout):
        box.runtime.exec_sync(sleeper, ["sleep", "777"], 0.2)
    mark = ("KCM_CONTAINER_ID", sleeper)
    until(lambda: len(processes.with_variable(*mark)) == 1)


def test_a_command_that_leaves_something_in_the_background_does_not_hang(
    box: Box, sleeper: str
) -> None:
    result = box.runtime.exec_sync(sleeper, ["sh", "-c", "sleep 60 & echo done"], 50)
    assert (result.stdout, result.exit_code) == (b"done\n", 0)


def test_a_command_that_does_not_exist_is_an_error(box: Box, sleeper: str) -> None:
    with pytest.raises(ContainerRuntimeError, match="executable file not found"):
        box.runtime.exec_sync(sleeper, ["no-such-program"], 20)


def test_nothing_can_be_executed_in_what_has_ended(box: Box) -> None:
    container = box.shell("exit 0", log_path="ended/0.log")
    box.end(container)
    with pytest.raises(ContainerRuntimeError, match="is not running"):
        box.runtime.exec_sync(container, ["true"], 20)


def test_input_reaches_a_command_and_its_end_too(box: Box, sleeper: str) -> None:
    with box.runtime.exec(sleeper, ["cat"], stdin=True) as stream:
        assert stream.stdin is not None
        assert stream.stdout is not None
        os.write(stream.stdin, b"hello\n")
        assert read_until(stream.stdout, b"\n") == b"hello\n"
        stream.close_stdin()
        assert stream.wait(20) == 0


def test_a_command_ends_with_its_stream(box: Box, sleeper: str) -> None:
    with box.runtime.exec(sleeper, ["sh", "-c", "echo $$; sleep 1000"]) as stream:
        assert stream.stdout is not None
        pid = int(read_until(stream.stdout, b"\n"))
        assert stream.wait(0) is None
    until(lambda: not is_alive(pid))


def test_a_terminal_has_a_size_that_can_change(box: Box, sleeper: str) -> None:
    with box.runtime.exec(
        sleeper, ["sh", "-c", "tty; read x; stty size; exit 3"], stdin=True, tty=True
    ) as stream:
        assert stream.stdin is not None
        assert stream.stdout is not None
        assert stream.stderr is None
        read_until(stream.stdout, b"/dev/pts/")
        stream.resize(columns=101, rows=43)
        os.write(stream.stdin, b"\n")
        read_until(stream.stdout, b"43 101")
        assert stream.wait(20) == 3


def test_attaching_sees_what_comes_and_is_heard(box: Box) -> None:
    script = "while read line; do echo got $line; echo err $line >&2; done; echo over"
    container = box.shell(script, stdin=True, stdin_once=True, log_path="attached/0.log")
    with box.runtime.attach(container, stdin=True) as stream:
        assert stream.stdin is not None
        assert stream.stdout is not None
        assert stream.stderr is not None
        os.write(stream.stdin, b"one\n")
        read_until(stream.stdout, b"got one\n")
        read_until(stream.stderr, b"err one\n")
        stream.close_stdin()
        read_until(stream.stdout, b"over\n")
        assert stream.wait(20) == 0
    assert sorted(box.output(container)) == ["err one", "got one", "over"]


def test_a_container_may_have_a_terminal(box: Box) -> None:
    container = box.shell(
        "test -t 0 && echo yes; read x; stty size", stdin=True, tty=True, log_path="tty/0.log"
    )
    box.says(container, "yes\r")
    with box.runtime.attach(container, stdin=True) as stream:
        assert stream.stdin is not None
        assert stream.stdout is not None
        stream.resize(columns=99, rows=33)
        os.write(stream.stdin, b"\n")
        read_until(stream.stdout, b"33 99")
        assert stream.wait(20) == 0


def test_who_does_not_read_is_dropped_and_the_container_goes_on(box: Box) -> None:
    container = box.shell("read x; seq 1 200000; echo over", stdin=True, log_path="slow/0.log")
    with box.runtime.attach(container, stdin=True) as stream:
        assert stream.stdin is not None
        os.write(stream.stdin, b"\n")
        assert box.end(container).exit_code == 0
    assert box.output(container)[-1] == "over"


def test_a_port_of_the_pod_can_be_reached(box: Box) -> None:
    (sandbox,) = box.runtime.list_pod_sandboxes()
    with socket.create_server((sandbox.ip, 0)) as server:
        port = server.getsockname()[1]
        with socket.socket(fileno=box.runtime.port_forward(box.sandbox, port)) as client:
            accepted, _ = server.accept()
            with accepted:
                accepted.sendall(b"hi")
                assert client.recv(2) == b"hi"
    with pytest.raises(ContainerRuntimeError, match="failed to connect"):
        box.runtime.port_forward(box.sandbox, port)


def test_sockets_are_found_below_long_paths(tmp_path: Path) -> None:
    box = Box(tmp_path / ("long" * 30))
    container = box.start("sleep", "1000")
    assert box.runtime.exec_sync(container, ["echo", "hi"], 20).stdout == b"hi\n"
    box.close()
