"""exec, attach and port forwarding."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from kcm.errors import ContainerRuntimeError, ExecTimeout
from kcm.kubelet.cri import StreamOptions
from kcm.kubelet.runtime.process import processes
from kcm.testing.waiting import until
from tests.integration.kubelet.runtimes import RealRuntime, is_alive

ALL = StreamOptions(stdin=True, stdout=True, stderr=True)


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealRuntime]:
    real = RealRuntime(tmp_path_factory.mktemp("real"))
    yield real
    real.close()


@pytest.fixture(scope="module")
def sleeper(real: RealRuntime) -> str:
    return real.start("sleep", "1000", env=[("NAME", "value")], log_path="sleeper/0.log")


def read_until(fd: int, text: bytes) -> bytes:
    received = b""
    while text not in received:
        try:
            data = os.read(fd, 4096)
        except OSError:  # the end of a terminal
            data = b""
        if not data:
            break
        received += data
    assert text in received
    return received


def test_a_command_runs_with_the_containers_environment_and_folder(
    real: RealRuntime, sleeper: str
) -> None:
    result = real.runtime.exec_sync(sleeper, ["sh", "-c", "echo $NAME; pwd >&2; exit 4"], 20)
    root = real.folder(sleeper) / "root"
    assert (result.stdout, result.stderr.decode().strip()) == (b"value\n", str(root))
    assert result.exit_code == 4


def test_all_of_a_large_output_arrives(real: RealRuntime, sleeper: str) -> None:
    result = real.runtime.exec_sync(sleeper, ["head", "-c", "3000000", "/dev/zero"], 20)
    assert (len(result.stdout), result.exit_code) == (3_000_000, 0)


def test_a_command_that_takes_too_long_is_killed(real: RealRuntime, sleeper: str) -> None:
    with pytest.raises(ExecTimeout):
        real.runtime.exec_sync(sleeper, ["sleep", "777"], 0.2)
    mark = ("KCM_CONTAINER_ID", sleeper)
    until(lambda: len(processes.with_variable(*mark)) == 1)


def test_a_command_that_leaves_something_in_the_background_does_not_hang(
    real: RealRuntime, sleeper: str
) -> None:
    result = real.runtime.exec_sync(sleeper, ["sh", "-c", "sleep 60 & echo done"], 50)
    assert (result.stdout, result.exit_code) == (b"done\n", 0)


def test_a_command_that_does_not_exist_is_an_error(real: RealRuntime, sleeper: str) -> None:
    with pytest.raises(ContainerRuntimeError, match="executable file not found"):
        real.runtime.exec_sync(sleeper, ["no-such-program"], 20)


def test_nothing_can_be_executed_in_what_has_ended(real: RealRuntime) -> None:
    container = real.shell("exit 0", log_path="ended/0.log")
    real.wait_for_end(container)
    with pytest.raises(ContainerRuntimeError, match="is not running"):
        real.runtime.exec_sync(container, ["true"], 20)


def test_input_reaches_a_command_and_its_end_too(real: RealRuntime, sleeper: str) -> None:
    with closing(real.runtime.exec(sleeper, ["cat"], ALL)) as stream:
        assert stream.stdin is not None
        assert stream.stdout is not None
        os.write(stream.stdin, b"hello\n")
        assert read_until(stream.stdout, b"\n") == b"hello\n"
        stream.close_stdin()
        assert stream.wait(20) == 0


def test_a_command_ends_with_its_stream(real: RealRuntime, sleeper: str) -> None:
    command = ["sh", "-c", "echo $$; sleep 1000"]
    with closing(real.runtime.exec(sleeper, command, StreamOptions(stdout=True))) as stream:
        assert stream.stdout is not None
        pid = int(read_until(stream.stdout, b"\n"))
        assert stream.wait(0) is None
    until(lambda: not is_alive(pid))


def test_a_terminal_has_a_size_that_can_change(real: RealRuntime, sleeper: str) -> None:
    command = ["sh", "-c", "tty; read x; stty size; exit 3"]
    wanted = StreamOptions(stdin=True, stdout=True, tty=True)
    with closing(real.runtime.exec(sleeper, command, wanted)) as stream:
        assert stream.stdin is not None
        assert stream.stdout is not None
        assert stream.stderr is None
        read_until(stream.stdout, b"/dev/pts/")
        stream.resize(columns=101, rows=43)
        os.write(stream.stdin, b"\n")
        read_until(stream.stdout, b"43 101")
        assert stream.wait(20) == 3


def test_attaching_sees_what_comes_and_is_heard(real: RealRuntime) -> None:
    script = "while read line; do echo got $line; echo err $line >&2; done; echo over"
    container = real.shell(script, stdin=True, stdin_once=True, log_path="attached/0.log")
    with closing(real.runtime.attach(container, ALL)) as stream:
        assert stream.stdin is not None
        assert stream.stdout is not None
        assert stream.stderr is not None
        os.write(stream.stdin, b"one\n")
        read_until(stream.stdout, b"got one\n")
        read_until(stream.stderr, b"err one\n")
        stream.close_stdin()
        read_until(stream.stdout, b"over\n")
        assert stream.wait(20) == 0
    assert sorted(real.output(container)) == ["err one", "got one", "over"]


def test_a_container_may_have_a_terminal(real: RealRuntime) -> None:
    container = real.shell(
        "test -t 0 && echo yes; read x; stty size", stdin=True, tty=True, log_path="tty/0.log"
    )
    real.wait_for_lines(container, "yes\r")
    with closing(real.runtime.attach(container, ALL)) as stream:
        assert stream.stdin is not None
        assert stream.stdout is not None
        stream.resize(columns=99, rows=33)
        os.write(stream.stdin, b"\n")
        read_until(stream.stdout, b"33 99")
        assert stream.wait(20) == 0


def test_who_does_not_read_is_dropped_and_the_container_goes_on(real: RealRuntime) -> None:
    container = real.shell("read x; seq 1 200000; echo over", stdin=True, log_path="slow/0.log")
    with closing(real.runtime.attach(container, ALL)) as stream:
        assert stream.stdin is not None
        os.write(stream.stdin, b"\n")
        assert real.wait_for_end(container).exit_code == 0
    assert real.output(container)[-1] == "over"


def test_a_port_of_the_pod_can_be_reached(real: RealRuntime) -> None:
    (sandbox,) = real.runtime.list_pod_sandboxes()
    with socket.create_server((sandbox.ip, 0)) as server:
        port = server.getsockname()[1]
        with socket.socket(
            fileno=real.runtime.port_forward(real.sandbox, port).descriptor
        ) as client:
            accepted, _ = server.accept()
            with accepted:
                accepted.sendall(b"hi")
                assert client.recv(2) == b"hi"
    with pytest.raises(ContainerRuntimeError, match="failed to connect"):
        real.runtime.port_forward(real.sandbox, port)


def test_sockets_are_found_below_long_paths(tmp_path: Path) -> None:
    real = RealRuntime(tmp_path / ("long" * 30))
    container = real.start("sleep", "1000")
    assert real.runtime.exec_sync(container, ["echo", "hi"], 20).stdout == b"hi\n"
    real.close()
