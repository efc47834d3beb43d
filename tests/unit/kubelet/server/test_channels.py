from __future__ import annotations

import asyncio
import json
from concurrent.futures import ThreadPoolExecutor
from typing import cast

import pytest

from kcm import errors
from kcm.kubelet.cri import Stream, StreamOptions
from kcm.kubelet.server.channels import (
    ERROR,
    RESIZE,
    ChannelSession,
    FirstVersion,
    build_exit_status,
    parse_stream_options,
)


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ({"output": "1"}, StreamOptions(stdout=True)),
        ({"input": "1", "output": "1", "error": "1"}, StreamOptions(True, True, True)),
        ({"stdin": "true", "stdout": "true", "stderr": "true"}, StreamOptions(True, True, True)),
        ({"output": "1", "error": "1", "tty": "1"}, StreamOptions(stdout=True, tty=True)),
    ],
)
def test_streams_are_asked_for(query: dict[str, str], expected: StreamOptions) -> None:
    assert parse_stream_options(query) == expected


@pytest.mark.parametrize("query", [{}, {"tty": "1"}, {"error": "1", "tty": "1"}])
def test_one_stream_at_least_is_asked_for(query: dict[str, str]) -> None:
    with pytest.raises(errors.BadRequest, match="at least 1 of stdin, stdout, stderr"):
        parse_stream_options(query)


def test_a_command_that_fails_is_told_with_its_code() -> None:
    assert build_exit_status(0)["status"] == "Success"
    status = build_exit_status(3)
    assert (status["status"], status["reason"]) == ("Failure", "NonZeroExitCode")
    assert status["details"]["causes"] == [{"reason": "ExitCode", "message": "3"}]


class Terminal:
    """The terminal of a command that runs on; it keeps the sizes that it gets."""

    stdin = stdout = stderr = None

    def __init__(self) -> None:
        self.sizes: list[tuple[int, int]] = []

    def resize(self, columns: int, rows: int) -> None:
        self.sizes.append((columns, rows))

    def wait(self, timeout: float | None = None) -> int | None:
        return None

    def close(self) -> None: ...


class Client:
    """Sends messages and leaves."""

    def __init__(self, messages: list[bytes]) -> None:
        self._messages = iter(messages)
        self.got: list[bytes] = []

    async def send(self, data: bytes) -> None:
        self.got.append(data)

    async def receive(self) -> bytes | None:
        return next(self._messages, None)

    async def close(self) -> None: ...


@pytest.mark.parametrize(
    "wrong",
    [
        b"",
        b"[" * 100_000,
        b"[" * 250,
        b"[]",
        b"7",
        b'{"Width": 1e999, "Height": 1}',
        b'{"Width": -1, "Height": 1}',
        b'{"Width": 65536, "Height": 1}',
        b'{"Width": [1], "Height": null}',
        json.dumps({"Width": 1, "Height": 1, "more": "x" * 300}).encode(),
    ],
)
def test_a_size_that_no_terminal_has_is_left_out_and_the_session_goes_on(wrong: bytes) -> None:
    terminal = Terminal()
    right = b'{"Width": 80, "Height": 24}'

    async def run() -> None:
        with ThreadPoolExecutor(3) as pool:
            client = Client([bytes([RESIZE]) + size for size in (wrong, right)])
            session = ChannelSession(client, StreamOptions(stdout=True, tty=True), pool)
            stream = cast("Stream", terminal)  # what is asked of it
            await session.run(lambda: stream, is_exec=True)

    asyncio.run(run())
    assert terminal.sizes == [(80, 24)]


@pytest.mark.parametrize(
    ("code", "told"),
    [(0, []), (3, [b"command terminated with non-zero exit code: exit status 3"])],
)
def test_the_first_version_of_the_protocol_tells_failures_as_text(
    code: int, told: list[bytes]
) -> None:
    client = Client([])

    async def run() -> None:
        connection = FirstVersion(client)
        await connection.send(bytes([ERROR]))  # announces the connection
        await connection.send(b"\1out")
        await connection.send(bytes([ERROR]) + json.dumps(build_exit_status(code)).encode())

    asyncio.run(run())
    assert client.got == [bytes([ERROR]), b"\1out", *(bytes([ERROR]) + text for text in told)]
