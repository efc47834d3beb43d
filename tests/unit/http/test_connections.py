"""Connections of the HTTP client that are kept, and used again."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from kcm.http import connections
from kcm.http.connections import Pool, Server
from kcm.http.faults import CallFailed
from kcm.http.fetching import Answer, fetch
from kcm.http.transport import Call, send
from tests.unit.http.servers import EMPTY, Several, turn


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
        ((EMPTY, EMPTY), [2]),
        ((b"HTTP/1.1 204 No Content\r\n\r\n", EMPTY), [2]),
        ((b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\n",) * 2, [2]),
        ((b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n",) * 2, [1, 1]),
        ((b"HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n",) * 2, [1, 1]),
        ((EMPTY + EMPTY, EMPTY), [1, 1]),
        ((EMPTY + b"x", EMPTY), [1, 1]),
        ((b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na<html>", EMPTY), [1, 1]),
        ((b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 1\r\n\r\nab", EMPTY),
         [1, 1]),
        ((EMPTY,), [1, 1]),
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
            writer.write(EMPTY)
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
        async with Several(EMPTY, b"") as several:
            await ask_twice(several, repeats=repeats)
            return several.asked

    if repeats:
        assert asyncio.run(ask()) == [2, 1]
    else:
        with pytest.raises(CallFailed, match="EOF"):
            asyncio.run(ask())


def test_a_connection_is_not_kept_for_another_name_or_trust() -> None:
    async def ask() -> list[int]:
        async with Several(EMPTY, EMPTY) as several:
            pool = Pool()
            await fetch(several.where, Call("GET", "/"), pool, most=10)
            await fetch(replace(several.where, name="other"), Call("GET", "/"), pool, most=10)
            pool.close()
            return several.asked

    assert asyncio.run(ask()) == [1, 1]


def test_a_closed_pool_keeps_nothing() -> None:
    async def ask() -> list[int]:
        async with Several(EMPTY, EMPTY) as several:
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
        async with Several(EMPTY, EMPTY) as several:
            pool = Pool()
            asked = (fetch(several.where, Call("GET", "/"), pool, most=1) for _ in range(4))
            await asyncio.gather(*asked)
            kept = 0
            while (connection := pool.take(several.where)) is not None:
                kept += 1
                connection.close()
            return kept

    assert asyncio.run(ask()) == 2


def test_a_connection_that_nobody_used_for_a_while_is_closed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(connections, "IDLE_TIMEOUT", 0.01)

    async def ask() -> None:
        closed = asyncio.Event()

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readuntil(b"\r\n\r\n")
            writer.write(EMPTY)
            await reader.read()
            writer.close()
            closed.set()

        async with await asyncio.start_server(serve, "127.0.0.1", 0) as listening:
            pool, where = Pool(), Server("127.0.0.1", listening.sockets[0].getsockname()[1])
            for _ in range(2):  # the timer that closes them is set again
                closed.clear()
                await fetch(where, Call("GET", "/"), pool, most=10)
                await asyncio.wait_for(closed.wait(), 10)
                assert pool.take(where) is None

    asyncio.run(ask())
