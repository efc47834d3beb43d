"""The POST of webhooks: where it goes, and what a redirect makes of it."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import pytest

from kcm.apiserver.egress import posting
from kcm.apiserver.egress.posting import Backend, BackendClient, Credentials, ServiceTarget
from kcm.apiserver.egress.services import Address
from kcm.apiserver.egress.waiting import LoopWaiter
from kcm.http.connections import Pool
from kcm.http.faults import CallFailed

_OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"


@pytest.mark.parametrize(
    ("path", "target"),
    [
        ("", "/?"), ("/", "/?"), ("/a", "/a?"), ("a//b/", "/a/b?"), ("/a/../b", "/b?"),
        ("/a b%20c", "/a%20b%2520c?"), ("/ä", "/%C3%A4?"),
    ],
)  # fmt: skip
def test_the_path_of_a_service_is_what_go_makes_of_it(path: str, target: str) -> None:
    assert Backend(ServiceTarget("ns", "hook", path=path)).path_and_query == target


def test_a_url_keeps_its_query() -> None:
    assert Backend("https://h:1/a/?b=c&d").path_and_query == "/a?b=c&d&"


@asynccontextmanager
async def webhook(*answers: bytes) -> AsyncIterator[tuple[int, list[bytes]]]:
    """Yields the port of a server and the requests that it gets, which get one answer each."""
    asked: list[bytes] = []
    left = iter(answers)

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            try:
                head = await reader.readuntil(b"\r\n\r\n")
            except asyncio.IncompleteReadError:
                break
            length = re.search(rb"content-length: (\d+)", head)
            body = await reader.readexactly(int(length[1])) if length else b""
            asked.append(head + body)
            writer.write(next(left).replace(b"PORT", port))
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as listening:
        number = listening.sockets[0].getsockname()[1]
        port = str(number).encode()
        try:
            yield number, asked
        finally:
            for _ in range(20):  # the server sees that the client has left
                await asyncio.sleep(0)


class Resolver:
    """Says that every Service is on a port of this machine."""

    def __init__(self, port: int) -> None:
        self.port = port

    def resolve(self, namespace: str, name: str, port: int | str) -> Address:
        return Address("127.0.0.1", self.port)


def post(monkeypatch: pytest.MonkeyPatch, *answers: bytes) -> tuple[bytes, Sequence[bytes]]:
    """Posts to a Service in plain text. Returns the answer and the requests that came."""
    monkeypatch.setattr(posting, "find_context", lambda trust: None)

    async def ask() -> tuple[bytes, Sequence[bytes]]:
        pool = Pool()
        async with webhook(*answers) as (port, asked):
            client = BackendClient(Resolver(port), LoopWaiter(), pool)  # type: ignore[arg-type] # all that is used of it
            credentials = Credentials(((b"authorization", b"Bearer t"),))
            backend = Backend(ServiceTarget("ns", "hook", path="/a"), credentials=credentials)
            try:
                return await client.post_soon(backend, b"review", 5), asked
            finally:
                pool.close()

    return asyncio.run(ask())


def test_a_review_is_posted_under_the_name_of_the_service(monkeypatch: pytest.MonkeyPatch) -> None:
    answer, [asked] = post(monkeypatch, _OK)
    assert answer == b"{}"
    assert asked.startswith(b"POST /a?timeout=5s HTTP/1.1\r\nhost: hook.ns.svc:443\r\n")
    assert b"authorization: Bearer t\r\n" in asked
    assert asked.endswith(b"content-length: 6\r\n\r\nreview")


@pytest.mark.parametrize(
    ("status", "method", "body"),
    [(307, b"POST", b"review"), (308, b"POST", b"review"), (302, b"GET", b""), (301, b"GET", b"")],
)
def test_a_redirect_is_followed_at_the_same_server(
    monkeypatch: pytest.MonkeyPatch, status: int, method: bytes, body: bytes
) -> None:
    moved = b"HTTP/1.1 %d x\r\nLocation: /b c?d\r\nContent-Length: 0\r\n\r\n" % status
    _, [_, again] = post(monkeypatch, moved, _OK)
    assert again.startswith(method + b" /b%20c?d HTTP/1.1\r\nhost: hook.ns.svc:443\r\n")
    assert b"authorization: Bearer t\r\n" in again
    assert again.partition(b"\r\n\r\n")[2] == body


def test_another_server_gets_no_credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    moved = b"HTTP/1.1 307 x\r\nLocation: http://127.0.0.1:PORT/b\r\nContent-Length: 0\r\n\r\n"
    _, [_, again] = post(monkeypatch, moved, _OK)
    assert again.startswith(b"POST /b HTTP/1.1\r\nhost: 127.0.0.1:")
    assert b"authorization" not in again


@pytest.mark.parametrize(
    ("location", "why"),
    [
        (b"ftp://h/", 'unsupported protocol scheme "ftp"'),
        (b"http://h:x/", "failed to parse Location header"),
        (b"/a", "stopped after 10 redirects"),
    ],
)
def test_a_redirect_that_leads_nowhere_fails(
    monkeypatch: pytest.MonkeyPatch, location: bytes, why: str
) -> None:
    moved = b"HTTP/1.1 307 x\r\nLocation: " + location + b"\r\nContent-Length: 0\r\n\r\n"
    with pytest.raises(CallFailed, match=why):
        post(monkeypatch, *[moved] * 11)
