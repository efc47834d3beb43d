"""The client's side of exec, attach and port-forward, against a streaming server in this test."""

from __future__ import annotations

import json
import os
import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from typing import Any

import pytest

from kcm import errors
from kcm.kubelet.cri import StreamOptions
from kcm.kubelet.server import spdy
from kcm.kubelet.server.remotecommand_client import RemoteStream, open_port

ALL = StreamOptions(stdin=True, stdout=True, stderr=True)
ACCEPTED = b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: SPDY/3.1\r\n\r\n"
SUCCESS = {"status": "Success"}


class Served:
    """The server's side of one connection: what came, by the kinds of streams."""

    def __init__(self, connection: socket.socket) -> None:
        self.socket = connection
        self.session = spdy.SpdySession()
        self.streams: dict[str, int] = {}
        self.headers: dict[str, Mapping[str, str]] = {}
        self.data: dict[str, bytes] = {}
        self.ended: set[str] = set()

    def read_until(self, holds: Callable[[], bool]) -> None:
        """Handles what the client sends until that holds, or the client leaves."""
        while not holds():
            received = self.socket.recv(65536)
            if not received:
                return
            for event in self.session.receive(received):
                self._handle(event)

    def _handle(self, event: spdy.Event) -> None:
        if isinstance(event, spdy.StreamOpened):
            kind = event.headers["streamtype"]
            self.streams[kind], self.headers[kind] = event.stream, event.headers
            self.socket.sendall(self.session.reply(event.stream))
        elif isinstance(event, spdy.Data):
            kind = next(k for k, stream in self.streams.items() if stream == event.stream)
            self.data[kind] = self.data.get(kind, b"") + event.data
            self.ended |= {kind} if event.ended else set()

    def send(self, kind: str, data: bytes, *, end: bool = False) -> None:
        self.socket.sendall(self.session.data(self.streams[kind], data, end=end))

    def finish(self, status: Any) -> None:
        self.send("error", json.dumps(status).encode(), end=True)


@contextmanager
def serve(script: Callable[[Served], None], answer: bytes = ACCEPTED) -> Iterator[str]:
    """Yields the URL of a server that runs the script with its first client."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def run() -> None:
            connection, _ = listener.accept()
            with connection:
                head = b""
                while b"\r\n\r\n" not in head:
                    head += connection.recv(65536)
                assert b"Upgrade: SPDY/3.1" in head
                connection.sendall(answer)
                with suppress(OSError):
                    script(Served(connection))

        thread = threading.Thread(target=run)
        thread.start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/exec/token"
        thread.join()


def read_all(descriptor: int | None) -> bytes:
    assert descriptor is not None
    out = b""
    while data := os.read(descriptor, 65536):
        out += data
    return out


def test_a_command_gets_its_input_and_its_end_and_gives_output_and_code() -> None:
    def command(client: Served) -> None:
        client.read_until(lambda: "stdin" in client.ended)
        client.send("stdout", client.data["stdin"], end=True)
        client.send("stderr", b"oh", end=True)
        causes = [{"reason": "ExitCode", "message": "3"}]
        client.finish(
            {"status": "Failure", "reason": "NonZeroExitCode", "details": {"causes": causes}}
        )

    with serve(command) as url, closing(RemoteStream(url, ALL)) as stream:
        assert stream.stdin is not None
        os.write(stream.stdin, b"some input")
        stream.close_stdin()
        assert read_all(stream.stdout) == b"some input"
        assert read_all(stream.stderr) == b"oh"
        assert stream.wait(30) == 3


def test_output_comes_before_the_code_however_much_it_is() -> None:
    whole = os.urandom(300_000)

    def command(client: Served) -> None:
        client.read_until(lambda: {"error", "stdout"} <= client.streams.keys())
        for at in range(0, len(whole), 30_000):
            client.send("stdout", whole[at : at + 30_000])
        client.finish(SUCCESS)

    wanted = StreamOptions(stdout=True)
    with serve(command) as url, closing(RemoteStream(url, wanted)) as stream:
        assert stream.wait(0) is None  # nobody has read the output yet
        assert read_all(stream.stdout) == whole
        assert stream.wait(30) == 0
        assert (stream.stdin, stream.stderr) == (None, None)


def test_a_terminal_is_resized() -> None:
    def command(client: Served) -> None:
        client.read_until(lambda: "resize" in client.data)
        client.send("stdout", client.data["resize"], end=True)
        client.finish(SUCCESS)

    wanted = StreamOptions(stdin=True, stdout=True, tty=True)
    with serve(command) as url, closing(RemoteStream(url, wanted)) as stream:
        stream.resize(80, 24)
        assert json.loads(read_all(stream.stdout)) == {"Width": 80, "Height": 24}
        assert stream.wait(30) == 0


@pytest.mark.parametrize(
    ("status", "words"),
    [
        ({"status": "Failure", "message": "no such program"}, "no such program"),
        ({"status": "Failure", "reason": "NonZeroExitCode"}, "None"),
        (["no", "status"], '"no", "status"'),
        (None, "null"),
    ],
)
def test_why_a_command_could_not_be_run_is_told(status: Any, words: str) -> None:
    def command(client: Served) -> None:
        client.read_until(lambda: "stderr" in client.streams)
        client.finish(status)

    with (
        serve(command) as url,
        closing(RemoteStream(url, ALL)) as stream,
        pytest.raises(errors.ContainerRuntimeError) as caught,
    ):
        stream.wait(30)
    assert words in caught.value.message


@pytest.mark.parametrize("last", [b"", b"\x80\x09\x00\x01\x00\x00\x00\x00", b"\x80\x03\x00\x02"])
def test_a_runtime_that_leaves_or_talks_nonsense_ends_the_stream(last: bytes) -> None:
    def command(client: Served) -> None:
        client.read_until(lambda: "stderr" in client.streams)
        client.socket.sendall(last)

    with serve(command) as url, closing(RemoteStream(url, ALL)) as stream:
        assert read_all(stream.stdout) == b""
        with pytest.raises(errors.ContainerRuntimeError, match="without a status"):
            stream.wait(30)


def test_a_client_that_leaves_ends_the_connection() -> None:
    left = threading.Event()

    def command(client: Served) -> None:
        with suppress(OSError):  # it is reset if an answer comes after the client's end
            client.read_until(lambda: False)
        left.set()

    with serve(command) as url:
        RemoteStream(url, ALL).close()
    assert left.is_set()


def test_a_refused_upgrade_says_why() -> None:
    answer = b"HTTP/1.1 404 Not Found\r\n\r\ncannot find the token\n"
    with (
        serve(lambda _: None, answer) as url,
        pytest.raises(errors.ContainerRuntimeError, match="refused: cannot find the token"),
    ):
        RemoteStream(url, ALL)


@pytest.mark.parametrize("url", ["https://127.0.0.1:1/exec/x", "http://127.0.0.1:1/exec/x"])
def test_a_server_that_is_not_reached_is_told(url: str) -> None:
    with pytest.raises(errors.ContainerRuntimeError, match=r"127\.0\.0\.1:1"):
        RemoteStream(url, ALL)


def test_a_port_is_connected_both_ways() -> None:
    def forward(client: Served) -> None:
        client.read_until(lambda: "data" in client.ended)
        assert client.headers["data"]["port"] == "80"
        assert client.headers["data"]["requestid"] == client.headers["error"]["requestid"]
        client.send("data", client.data["data"].upper(), end=True)
        client.send("error", b"", end=True)

    with serve(forward) as url:
        connection = open_port(url, 80)
        with socket.socket(fileno=connection.descriptor) as client:
            client.sendall(b"hello")
            client.shutdown(socket.SHUT_WR)
            assert client.recv(100) == b"HELLO"
            assert client.recv(100) == b""
    assert connection.find_fault() == ""


def test_a_port_that_nothing_listens_on_is_told_at_the_end() -> None:
    def forward(client: Served) -> None:
        client.read_until(lambda: "data" in client.streams)
        client.send("error", b"error forwarding port 80 to pod x, uid : refused", end=True)
        client.send("data", b"", end=True)

    with serve(forward) as url:
        connection = open_port(url, 80)
        with socket.socket(fileno=connection.descriptor) as client:
            assert client.recv(100) == b""
    assert connection.find_fault() == "refused"
