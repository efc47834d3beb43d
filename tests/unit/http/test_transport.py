"""The HTTP client, against servers that keep to HTTP/1.1 and others."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from kcm.http import connections, transport
from kcm.http.connections import Server
from kcm.http.faults import CallFailed
from kcm.http.transport import Call, Response, Upgraded, send, split_target, upgrade
from tests.unit.http.servers import EMPTY, Serve, server, turn

_UPGRADED = b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n"


async def exchange(
    answer: bytes, body: AsyncIterator[bytes] | None = None, *, method: str = "GET"
) -> tuple[Response, bytes, bytes]:
    """Returns the response, its body, and what the server got until it answered."""
    got = b""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal got
        got = await reader.readuntil(b"\r\n\r\n")
        if body is not None:
            got += await reader.readuntil(b"0\r\n\r\n")
        writer.write(answer)

    call = Call(method, "/a?b=c", [(b"X-A", b"b")], body, head_timeout=5)
    async with server(serve) as where, send(where, call) as response:
        text = b""
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
    assert (response.status, body) == (status, text)
    assert got.startswith(b"GET /a?b=c HTTP/1.1\r\nhost: 127.0.0.1:")
    assert b"X-A: b\r\n" in got


def test_a_response_to_head_has_no_body() -> None:
    answer = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n"
    response, body, _ = asyncio.run(exchange(answer, method="HEAD"))
    assert (response.header(b"content-length"), body) == ("5", b"")


def test_a_body_of_unknown_length_is_sent_in_chunks() -> None:
    async def pieces() -> AsyncIterator[bytes]:
        for piece in (b"one", b"", b"two"):
            yield piece

    _, _, got = asyncio.run(exchange(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", pieces()))
    assert got.endswith(b"\r\n\r\n3\r\none\r\n3\r\ntwo\r\n0\r\n\r\n")


def test_an_upgrade_is_the_connection_with_what_follows_the_head() -> None:
    async def ask() -> tuple[bytes, bytes]:
        async with (
            server(answering(_UPGRADED + b"rest")) as where,
            upgrade(where, Call("GET", "/")) as upgraded,
        ):
            assert isinstance(upgraded, Upgraded)
            return upgraded.head, await upgraded.reader.read()

    assert asyncio.run(ask()) == (_UPGRADED, b"rest")


def test_an_upgrade_that_nobody_asked_for_is_an_error() -> None:
    with pytest.raises(CallFailed, match="unexpected upgrade"):
        asyncio.run(exchange(_UPGRADED))


@pytest.mark.parametrize(
    "answer",
    [
        b"", b"HTTP/1.1 200", b"rubbish\r\n\r\n", b"HTTP/1.1 200 OK\r\n" + b"a: b\r\n" * 20_000,
        b"HTTP/1.1 100 Continue\r\n\r\n" * 1000, b"HTTP/1.1 abc\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n",
    ],
)  # fmt: skip
def test_what_is_no_response_is_an_error(answer: bytes) -> None:
    with pytest.raises(CallFailed):
        asyncio.run(exchange(answer))


def test_a_body_that_is_cut_is_an_error() -> None:
    with pytest.raises(CallFailed, match="unexpected EOF"):
        asyncio.run(exchange(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf"))


def test_a_server_that_says_nothing_is_not_waited_for() -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()

    async def ask() -> None:
        async with server(serve) as where, send(where, Call("GET", "/", head_timeout=0.05)):
            pass

    with pytest.raises(CallFailed, match="timeout awaiting response headers"):
        asyncio.run(ask())


def test_a_host_is_reached_at_the_first_of_its_addresses_that_answers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def resolve(host: str, port: int, *, to_global: bool) -> list[str]:
        return ["127.0.0.9", "127.0.0.1"]

    async def reach() -> int:
        async with server(answering(EMPTY)) as where, send(where, Call("GET", "/")) as reached:
            return reached.status

    monkeypatch.setattr(connections, "resolve", resolve)
    assert asyncio.run(reach()) == 200


def answering(answer: bytes) -> Serve:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(answer)

    return serve


def test_an_answer_is_read_that_came_before_the_connection_was_reset() -> None:
    async def ask() -> list[bytes]:
        async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.write(b"HTTP/1.1 413 Too Large\r\nContent-Length: 5\r\n\r\nlarge")
            await turn()
            writer.transport.abort()  # with the request unread, so that the connection is reset

        call = Call("POST", "/", (), bytes(1 << 20))
        async with await asyncio.start_server(refuse, "127.0.0.1", 0) as listening:
            where = Server("127.0.0.1", listening.sockets[0].getsockname()[1])
            async with send(where, call) as response:
                await turn()
                return [piece async for piece in response.body]

    assert asyncio.run(ask()) == [b"large"]


def test_a_server_that_does_not_read_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    async def endless() -> AsyncIterator[bytes]:
        while True:
            yield bytes(1 << 16)

    async def ask() -> None:
        seen = asyncio.Event()

        async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await seen.wait()
            writer.transport.abort()

        async with await asyncio.start_server(silent, "127.0.0.1", 0) as listening:
            where = Server("127.0.0.1", listening.sockets[0].getsockname()[1])
            try:
                async with send(where, Call("PUT", "/", (), endless(), head_timeout=None)):
                    pass
            finally:
                seen.set()
                await turn()

    monkeypatch.setattr(transport, "STALL_TIMEOUT", 0.05)
    with pytest.raises(CallFailed):
        asyncio.run(ask())


@pytest.mark.parametrize(
    ("url", "target"),
    [
        ("http://h", "/"),
        ("http://h/", "/"),
        ("http://h?a=1", "/?a=1"),
        ("https://h:1/b/c?d=e&f#g", "/b/c?d=e&f"),
    ],
)
def test_the_target_of_a_request_is_path_and_query(url: str, target: str) -> None:
    assert split_target(url)[1] == target
