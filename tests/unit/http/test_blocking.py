"""Requests from threads, against servers that answer and others."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import httpx
import pytest

from kcm.http import blocking
from kcm.http.blocking import ClientOptions
from kcm.http.faults import CallFailed
from tests.ports import free_port

OPTIONS = ClientOptions(5.0)
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nbody"


@contextmanager
def server(*answers: bytes) -> Iterator[tuple[str, list[bytes]]]:
    """Yields the URL of a server and the requests that it gets. Each connection gets one answer."""
    asked: list[bytes] = []

    def serve() -> None:
        with suppress(OSError):
            for answer in answers:
                connection, _ = listening.accept()
                with connection:
                    asked.append(connection.recv(1 << 16))
                    connection.sendall(answer)

    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=serve)
        thread.start()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}/page", asked
        listening.close()
    thread.join(5)


def test_a_page_has_a_status_and_a_body() -> None:
    with server(OK) as (url, asked):
        options = ClientOptions(5.0, headers=[("x-own", "1")])
        assert blocking.get(url, options, most=100) == (200, b"body")
    assert b"x-own: 1\r\n" in asked[0].lower()


def test_a_page_is_read_as_far_as_the_caller_wants() -> None:
    with server(OK) as (url, _):
        assert blocking.get(url, OPTIONS, most=2) == (200, b"bo")


def test_a_redirect_is_followed() -> None:
    moved = (
        b"HTTP/1.1 302 Found\r\nLocation: /other\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
    )
    with server(moved, OK) as (url, asked):
        assert blocking.get(url, OPTIONS, most=100) == (200, b"body")
    assert asked[1].startswith(b"GET /other ")


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (b"", "EOF"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf", "unexpected EOF"),
    ],
)
def test_a_server_that_breaks_off_is_told_in_the_words_of_go(answer: bytes, why: str) -> None:
    with server(answer) as (url, _), pytest.raises(CallFailed, match=f"^{why}$"):
        blocking.get(url, OPTIONS, most=100)


def test_nobody_listens() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    with pytest.raises(CallFailed, match=f"dial tcp 127.0.0.1:{port}: connect: connection refused"):
        blocking.get(f"http://127.0.0.1:{port}", OPTIONS, most=100)


def test_what_the_system_says_is_found_behind_the_errors_of_httpx_own_transport() -> None:
    url = f"http://127.0.0.1:{free_port()}"
    with httpx.Client(trust_env=False) as client, pytest.raises(httpx.ConnectError) as raised:
        client.get(url)
    said = blocking.describe(raised.value, url).message
    assert said == f"dial tcp {url.removeprefix('http://')}: connect: connection refused"


def test_a_server_that_says_nothing_is_not_waited_for() -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as silent,
        pytest.raises(CallFailed, match="context deadline exceeded") as failed,
    ):
        blocking.get(f"http://127.0.0.1:{silent.getsockname()[1]}", ClientOptions(0.05), most=100)
    assert failed.value.timed_out
