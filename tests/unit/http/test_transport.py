"""The HTTP client, against servers that keep to HTTP/1.1 and others."""

from __future__ import annotations

import asyncio
import socket
import ssl
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from pathlib import Path

import pytest

from kcm.apiserver import credentials
from kcm.http import connections, transport
from kcm.http.connections import Connection, Pool, Server
from kcm.http.faults import CallFailed
from kcm.http.transport import Answer, Call, Response, Upgraded, fetch, send, upgrade

_UPGRADED = b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n"
Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def server(serve: Serve) -> AsyncIterator[Server]:
    """Yields a server, and waits until it is done with its only client."""
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
            yield Server("127.0.0.1", listening.sockets[0].getsockname()[1])
        finally:
            await asyncio.wait_for(done.wait(), 10)
            for _ in range(3):  # the transports are closed in the next turns of the loop
                await asyncio.sleep(0)


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
        async with server(answering(_EMPTY)) as where, send(where, Call("GET", "/")) as reached:
            return reached.status

    monkeypatch.setattr(connections, "resolve", resolve)
    assert asyncio.run(reach()) == 200


def answering(answer: bytes) -> Serve:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(answer)

    return serve


@pytest.mark.parametrize("value", [b"a\r\nb: c", b"a\nb", b"a\rb"])
def test_a_header_cannot_begin_another_one(value: bytes) -> None:
    async def ask() -> None:
        async with Several() as several:
            await fetch(several.where, Call("GET", "/", [(b"x", value)]), most=10)

    with pytest.raises(CallFailed, match="invalid header field value"):
        asyncio.run(ask())


def test_a_response_has_at_most_the_size_that_the_caller_names() -> None:
    async def ask() -> None:
        async with server(
            answering(b"HTTP/1.1 200 OK\r\nContent-Length: 11\r\n\r\n" + b"x" * 11)
        ) as to:
            await fetch(to, Call("GET", "/"), most=10)

    with pytest.raises(CallFailed, match="the response is larger than 10 bytes"):
        asyncio.run(ask())


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


@pytest.mark.parametrize("sent", [b"", b"HTTP/1.1 200 OK\r\n\r\n"])
def test_a_silent_server_holds_no_connection_that_was_given_up(
    sent: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sockets: list[socket.socket] = []
    served = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    files = credentials.certificate(tmp_path)
    served.load_cert_chain(files.certificate, files.key)
    over = threading.Event()

    def serve(listening: socket.socket) -> None:
        connection, _ = listening.accept()
        with served.wrap_socket(connection, server_side=True) as secured:
            secured.sendall(sent)
            over.wait(20)

    async def connect(where: Server) -> Connection:
        connection = await connections.connect(where)
        sockets.append(connection.writer.get_extra_info("socket"))
        return connection

    async def give_up(where: Server) -> None:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.2):
                await fetch(where, Call("GET", "/"), most=10)
        await turn()
        assert sockets[0].fileno() == -1

    monkeypatch.setattr(transport, "connect", connect)
    with socket.create_server(("127.0.0.1", 0)) as listening, ThreadPoolExecutor(1) as pool:
        pool.submit(serve, listening)
        trust = ssl.create_default_context(cafile=str(files.certificate))
        try:
            asyncio.run(give_up(Server("127.0.0.1", listening.getsockname()[1], trust)))
        finally:
            over.set()


# --- connections that are kept


_EMPTY = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"


class Several:
    """A server of several connections, each of which answers the given answers in turn."""

    def __init__(self, *answers: bytes) -> None:
        self._answers = answers
        self.asked: list[int] = []  # how many requests each connection got
        self._serving: list[asyncio.Future[None]] = []

    async def __aenter__(self) -> Several:
        self._listening = await asyncio.start_server(self._begin, "127.0.0.1", 0)
        self.where = Server("127.0.0.1", self._listening.sockets[0].getsockname()[1])
        return self

    async def __aexit__(self, *raised: object) -> None:
        self._listening.close()
        await asyncio.gather(*self._serving)
        await turn()

    def _begin(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._serving.append(asyncio.ensure_future(self._serve(reader, writer)))

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        number = len(self.asked)
        self.asked.append(0)
        with suppress(OSError, EOFError):
            for answer in self._answers:
                await reader.readuntil(b"\r\n\r\n")
                self.asked[number] += 1
                writer.write(answer)
        writer.close()
        with suppress(OSError):
            await writer.wait_closed()


async def turn() -> None:
    """Lets the event loop see what the other side has done to connections."""
    for _ in range(20):
        await asyncio.sleep(0)


async def ask_twice(several: Several, *, repeats: bool = False) -> list[Answer]:
    pool, call = Pool(), Call("GET", "/", repeats=repeats)
    first = await fetch(several.where, call, pool, most=10)
    await turn()
    second = await fetch(several.where, call, pool, most=10)
    pool.close()
    return [first, second]


@pytest.mark.parametrize(
    ("answers", "asked"),
    [
        ((_EMPTY, _EMPTY), [2]),
        ((b"HTTP/1.1 204 No Content\r\n\r\n", _EMPTY), [2]),
        ((b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\n",) * 2, [2]),
        ((b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n",) * 2, [1, 1]),
        ((b"HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n",) * 2, [1, 1]),
        ((_EMPTY + _EMPTY, _EMPTY), [1, 1]),
        ((_EMPTY + b"x", _EMPTY), [1, 1]),
        ((b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na<html>", _EMPTY), [1, 1]),
        ((b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 1\r\n\r\nab", _EMPTY),
         [1, 1]),
        ((_EMPTY,), [1, 1]),
    ],
    ids=["length", "no content", "chunks", "close", "1.0", "two answers", "more", "a page",
         "more at its end", "closed"],
)  # fmt: skip
def test_a_connection_is_used_again_if_nothing_is_left_of_the_first_use(
    answers: tuple[bytes, ...], asked: list[int]
) -> None:
    async def ask() -> list[int]:
        async with Several(*answers) as several:
            assert [one.status // 100 for one in await ask_twice(several)] == [2, 2]
            return several.asked

    assert asyncio.run(ask()) == asked


def test_what_came_unasked_answers_no_request() -> None:
    smuggled = b"HTTP/1.1 418 Teapot\r\nContent-Length: 0\r\n\r\n"

    async def ask() -> list[int]:
        later = asyncio.Event()

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readuntil(b"\r\n\r\n")
            writer.write(_EMPTY)
            await later.wait()
            writer.write(smuggled)
            writer.close()

        async with await asyncio.start_server(serve, "127.0.0.1", 0) as listening:
            pool, where = Pool(), Server("127.0.0.1", listening.sockets[0].getsockname()[1])
            first = await fetch(where, Call("GET", "/"), pool, most=10)
            later.set()
            await turn()
            second = await fetch(where, Call("GET", "/"), pool, most=10)
            pool.close()
            await turn()
        return [first.status, second.status]

    assert asyncio.run(ask()) == [200, 200]


@pytest.mark.parametrize("repeats", [True, False])
def test_a_request_that_meets_a_closing_connection_is_sent_again_if_it_may_be(
    repeats: bool,
) -> None:
    """The server closes the connection when it gets the second request, without a word."""

    async def ask() -> list[int]:
        async with Several(_EMPTY, b"") as several:
            await ask_twice(several, repeats=repeats)
            return several.asked

    if repeats:
        assert asyncio.run(ask()) == [2, 1]
    else:
        with pytest.raises(CallFailed, match="EOF"):
            asyncio.run(ask())


def test_a_connection_is_not_kept_for_another_name_or_trust() -> None:
    async def ask() -> list[int]:
        async with Several(_EMPTY, _EMPTY) as several:
            pool = Pool()
            await fetch(several.where, Call("GET", "/"), pool, most=10)
            await fetch(replace(several.where, name="other"), Call("GET", "/"), pool, most=10)
            pool.close()
            return several.asked

    assert asyncio.run(ask()) == [1, 1]


def test_a_closed_pool_keeps_nothing() -> None:
    async def ask() -> list[int]:
        async with Several(_EMPTY, _EMPTY) as several:
            pool = Pool()
            async with send(several.where, Call("GET", "/"), pool) as response:
                pool.close()
                assert [piece async for piece in response.body] == []
            assert pool.take(several.where) is None
            return several.asked

    assert asyncio.run(ask()) == [1]


def test_few_connections_to_a_server_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "MOST_IDLE", 2)

    async def ask() -> int:
        async with Several(_EMPTY, _EMPTY) as several:
            pool = Pool()
            asked = (fetch(several.where, Call("GET", "/"), pool, most=1) for _ in range(4))
            await asyncio.gather(*asked)
            kept = 0
            while (connection := pool.take(several.where)) is not None:
                kept += 1
                connection.close()
            return kept

    assert asyncio.run(ask()) == 2
