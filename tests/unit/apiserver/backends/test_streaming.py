"""The HTTP client, against servers that keep to HTTP/1.1 and others."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress

import pytest

from kcm.apiserver.backends import streaming
from kcm.apiserver.backends.streaming import ExchangeError, Incoming, Outgoing, Upgraded, send

Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def server(serve: Serve) -> AsyncIterator[str]:
    """Yields the URL of a server, and waits until it is done with its only client."""
    done = asyncio.Event()

    async def serve_once(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            await serve(reader, writer)
            writer.close()
            await writer.wait_closed()
        done.set()

    listening = await asyncio.start_server(serve_once, "127.0.0.1", 0)
    async with listening:
        try:
            yield f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}"
        finally:
            await asyncio.wait_for(done.wait(), 10)
            for _ in range(3):  # the transports are closed in the next turns of the loop
                await asyncio.sleep(0)


async def exchange(
    answer: bytes, body: AsyncIterator[bytes] | None = None, *, method: str = "GET"
) -> tuple[Incoming | Upgraded, bytes, bytes]:
    """Returns the response, its body, and what the server got until it answered."""
    got = b""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal got
        got = await reader.readuntil(b"\r\n\r\n")
        if body is not None:
            got += await reader.readuntil(b"0\r\n\r\n")
        writer.write(answer)

    async with (
        server(serve) as url,
        send(Outgoing(method, f"{url}/a?b=c", [("X-A", "b")], body, None, 5)) as response,
    ):
        text = b""
        if isinstance(response, Incoming):
            async for piece in response.body:
                text += piece
        return response, text, got


@pytest.mark.parametrize(
    ("answer", "status", "text"),
    [
        (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi", 200, b"hi"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n", 200, b"hi"),
        (b"HTTP/1.0 200 OK\r\n\r\nuntil the end", 200, b"until the end"),
        (b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n"
         b"HTTP/1.1 204 No Content\r\n\r\n", 204, b""),
        (b"HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\n\r\n", 304, b""),
        (b"HTTP/1.1 500 Oh\r\nContent-Length: 0\r\n\r\n", 500, b""),
    ],
)  # fmt: skip
def test_responses_are_read_in_every_form(answer: bytes, status: int, text: bytes) -> None:
    response, body, got = asyncio.run(exchange(answer))
    assert isinstance(response, Incoming)
    assert (response.status, body) == (status, text)
    assert got.startswith(b"GET /a?b=c HTTP/1.1\r\nHost: 127.0.0.1:")
    assert b"X-A: b\r\n" in got


def test_a_response_to_head_has_no_body() -> None:
    answer = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n"
    response, body, _ = asyncio.run(exchange(answer, method="HEAD"))
    assert isinstance(response, Incoming)
    assert (response.header("content-length"), body) == ("5", b"")


def test_a_body_of_unknown_length_is_sent_in_chunks() -> None:
    async def pieces() -> AsyncIterator[bytes]:
        for piece in (b"one", b"", b"two"):
            yield piece

    _, _, got = asyncio.run(exchange(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", pieces()))
    assert got.endswith(b"\r\n\r\n3\r\none\r\n3\r\ntwo\r\n0\r\n\r\n")


def test_an_upgrade_is_the_connection() -> None:
    answer = b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\nrest"
    response, _, _ = asyncio.run(exchange(answer))
    assert isinstance(response, Upgraded)
    assert response.head.endswith(b"\r\n\r\n")


@pytest.mark.parametrize(
    "answer",
    [
        b"", b"HTTP/1.1 200", b"rubbish\r\n\r\n", b"HTTP/1.1 200 OK\r\n" + b"a: b\r\n" * 20_000,
        b"HTTP/1.1 100 Continue\r\n\r\n" * 1000, b"HTTP/1.1 abc\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n",
    ],
)  # fmt: skip
def test_what_is_no_response_is_an_error(answer: bytes) -> None:
    with pytest.raises(ExchangeError):
        asyncio.run(exchange(answer))


def test_a_body_that_is_cut_is_an_error() -> None:
    with pytest.raises(ConnectionError):
        asyncio.run(exchange(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf"))


def test_a_server_that_says_nothing_is_not_waited_for() -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()

    async def ask() -> None:
        async with server(serve) as url, send(Outgoing("GET", url, head_timeout=0.05)):
            pass

    with pytest.raises(ExchangeError, match="timeout awaiting response headers"):
        asyncio.run(ask())


def test_a_host_is_reached_at_the_first_of_its_addresses_that_answers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def resolve(host: str, port: int) -> list[str]:
        return ["127.0.0.9", "127.0.0.1"]

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 204 No Content\r\n\r\n")

    async def reach() -> int:
        async with server(answer) as url, send(Outgoing("GET", url, (), to_global=True)) as reached:
            return reached.status if isinstance(reached, Incoming) else 0

    monkeypatch.setattr(streaming, "resolve_global", resolve)
    assert asyncio.run(reach()) == 204
