"""Whole responses, however they come."""

from __future__ import annotations

import asyncio
import socket
import ssl
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from kcm.apiserver import credentials
from kcm.http import connections, fetching
from kcm.http.connections import Connection, Server
from kcm.http.faults import CallFailed
from kcm.http.fetching import Answer, fetch
from kcm.http.transport import Call
from tests.unit.http.servers import EMPTY, Several, server, turn

_SWITCHING = b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n"


async def ask(
    answer: bytes, *, method: str = "GET", step: int = 1 << 20, timeout: float | None = 5
) -> Answer:
    """Returns the response of a server that answers in pieces of `step` bytes, and closes."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        for start in range(0, len(answer), step):
            writer.write(answer[start : start + step])
            await turn()

    async with server(serve) as where:
        return await fetch(where, Call(method, "/", head_timeout=timeout), most=20)


@pytest.mark.parametrize("step", [1, 1 << 20], ids=["byte by byte", "at once"])
@pytest.mark.parametrize(
    ("answer", "status", "body"),
    [
        (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi", 200, b"hi"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n1\r\n!\r\n0\r\n\r\n",
         200, b"hi!"),
        (b"HTTP/1.0 200 OK\r\n\r\nuntil the end", 200, b"until the end"),
        (b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n"
         b"HTTP/1.1 204 No Content\r\n\r\n", 204, b""),
        (EMPTY + b"HTTP/1.1 418 Teapot\r\nContent-Length: 1\r\n\r\nx", 200, b""),
    ],
    ids=["length", "chunks", "1.0", "informational", "another one"],
)  # fmt: skip
def test_a_response_is_the_same_in_however_many_pieces_it_comes(
    answer: bytes, status: int, body: bytes, step: int
) -> None:
    response = asyncio.run(ask(answer, step=step))
    assert (response.status, response.body) == (status, body)


def test_a_response_to_head_has_no_body_to_wait_for() -> None:
    answer = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n"
    response = asyncio.run(ask(answer, method="HEAD"))
    assert (response.header(b"content-length"), response.body) == ("5", b"")


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (b"", "^EOF$"),
        (b"HTTP/1.1 200", "unexpected EOF"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf", "unexpected EOF"),
        (b"rubbish\r\n\r\n", "malformed HTTP response"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n", "malformed HTTP response"),
        (b"HTTP/1.1 200 OK\r\n" + b"a: b\r\n" * 20_000, "headers exceeded 65536 bytes"),
        (b"HTTP/1.1 200 OK\r\n" + b"a: b\r\n" * 20_000 + b"\r\n", "headers exceeded 65536 bytes"),
        (b"HTTP/1.1 103 Early Hints\r\n\r\n" * 1000, "too many 1xx"),
        (_SWITCHING, "unexpected upgrade"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 21\r\n\r\n" + b"x" * 21, "larger than 20 bytes"),
    ],
)  # fmt: skip
def test_what_is_no_response_is_an_error(answer: bytes, why: str) -> None:
    with pytest.raises(CallFailed, match=why):
        asyncio.run(ask(answer))


def test_a_response_that_never_begins_is_not_waited_for() -> None:
    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()

    async def wait() -> None:
        async with server(silent) as where:
            await fetch(where, Call("GET", "/", head_timeout=0.05), most=10)

    with pytest.raises(CallFailed, match="timeout awaiting response headers"):
        asyncio.run(wait())


@pytest.mark.parametrize("value", [b"a\r\nb: c", b"a\nb", b"a\rb"])
def test_a_header_cannot_begin_another_one(value: bytes) -> None:
    async def ask() -> None:
        async with Several() as several:
            await fetch(several.where, Call("GET", "/", [(b"x", value)]), most=10)

    with pytest.raises(CallFailed, match="invalid header field value"):
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

    monkeypatch.setattr(fetching, "connect", connect)
    with socket.create_server(("127.0.0.1", 0)) as listening, ThreadPoolExecutor(1) as pool:
        pool.submit(serve, listening)
        trust = ssl.create_default_context(cafile=str(files.certificate))
        try:
            asyncio.run(give_up(Server("127.0.0.1", listening.getsockname()[1], trust)))
        finally:
            over.set()
