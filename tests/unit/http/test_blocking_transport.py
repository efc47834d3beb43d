"""httpx over blocking sockets, against servers that do and do not keep to HTTP/1.1."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress

import httpx
import pytest

from kcm.http.blocking import ClientOptions, open_client, open_transport

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nbody"
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nbo\r\n2\r\ndy\r\n0\r\n\r\n"
UNSIZED = b"HTTP/1.0 200 OK\r\n\r\nbody"


class Server:
    """A server whose connections send these answers, one for each request, and then end."""

    def __init__(self, connections: Sequence[Sequence[bytes]]) -> None:
        self.requests: list[bytes] = []
        self.used: list[int] = []  # the connection of each request
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listening.getsockname()[1]}"
        self._connections = connections
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()

    def _serve(self) -> None:
        with suppress(OSError):
            for number, answers in enumerate(self._connections):
                connection, _ = self._listening.accept()
                with connection:
                    for answer in answers:
                        request = connection.recv(1 << 16)
                        if not request:
                            break
                        self.requests.append(request)
                        self.used.append(number)
                        connection.sendall(answer)

    def close(self) -> None:
        self._listening.shutdown(socket.SHUT_RDWR)  # ends the wait for a connection
        self._listening.close()
        self._thread.join(5)


@contextmanager
def asking(*connections: Sequence[bytes]) -> Iterator[tuple[httpx.Client, Server]]:
    server = Server(connections)
    try:
        with open_client(ClientOptions(5.0, base_url=server.url)) as client:
            yield client, server
    finally:
        server.close()


@pytest.mark.parametrize(
    "answer",
    [
        OK,
        CHUNKED,
        UNSIZED,
        b"HTTP/1.1 100 Continue\r\n\r\n" + OK,
        b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n" + OK,
    ],
)
def test_responses_are_read_in_every_form(answer: bytes) -> None:
    with asking([answer]) as (client, _):
        response = client.get("/a")
    assert (response.status_code, response.content) == (200, b"body")


def test_a_request_has_its_head_and_its_body() -> None:
    with asking([OK]) as (client, server):
        client.post("/a%20b?c=d", content=b"{}", headers={"X-Own": "1"})
    head, _, body = server.requests[0].partition(b"\r\n\r\n")
    assert head.startswith(b"POST /a%20b?c=d HTTP/1.1\r\n")
    lines = head.lower().split(b"\r\n")
    assert {b"x-own: 1", b"content-length: 2"} < set(lines)
    assert body == b"{}"


def test_a_response_to_head_has_no_body() -> None:
    with asking([b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n"]) as (client, _):
        response = client.head("/")
    assert (response.status_code, response.content) == (200, b"")


@pytest.mark.parametrize("answer", [OK, CHUNKED])
def test_a_connection_is_used_again(answer: bytes) -> None:
    with asking([answer, OK], [OK]) as (client, server):
        assert [client.get("/").content, client.get("/").content] == [b"body", b"body"]
    assert server.used == [0, 0]


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 4\r\n\r\nbody",
        b"HTTP/1.0 200 OK\r\nContent-Length: 4\r\n\r\nbody",
        OK + b"surplus",
    ],
)
def test_a_connection_that_may_not_be_used_again_is_closed(answer: bytes) -> None:
    with asking([answer, OK], [OK]) as (client, server):
        client.get("/")
        assert client.get("/").content == b"body"
    assert server.used == [0, 1]


def test_a_body_that_is_left_costs_the_connection() -> None:
    half = b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf"
    with asking([half, OK], [OK]) as (client, server):
        with client.stream("GET", "/"):
            pass
        assert client.get("/").content == b"body"
    assert server.used == [0, 1]


def test_a_read_is_sent_again_if_a_kept_connection_ends_before_the_response() -> None:
    with asking([OK, b""], [OK]) as (client, server):
        client.get("/")
        assert client.get("/").content == b"body"
    assert server.used == [0, 0, 1]


def test_a_write_is_not_sent_again() -> None:
    with asking([OK, b""], [OK]) as (client, server):
        client.get("/")
        with pytest.raises(httpx.RemoteProtocolError, match=r"^EOF$"):
            client.post("/", content=b"{}")
    assert server.used == [0, 0]


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (b"", "EOF"),
        (b"HTTP/1.1 200", "unexpected EOF"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf", "unexpected EOF"),
        (b"SSH-2.0-OpenSSH\r\n\r\n", "malformed HTTP response"),
        (b"HTTP/1.1 200 OK\r\nA: " + b"a" * 70_000, "server response headers exceeded"),
    ],
)
def test_what_is_no_response_is_an_error(answer: bytes, why: str) -> None:
    with asking([answer]) as (client, _), pytest.raises(httpx.RemoteProtocolError, match=why):
        client.get("/")


def test_a_server_that_says_nothing_is_not_waited_for() -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as silent,
        open_client(ClientOptions(5.0)) as client,
        pytest.raises(httpx.ReadTimeout),
    ):
        client.get(f"http://127.0.0.1:{silent.getsockname()[1]}", timeout=0.05)


@pytest.mark.parametrize("value", ["a\r\nx-evil: 1", "a\nb"])
def test_a_header_cannot_begin_another_one(value: str) -> None:
    with asking([OK]) as (client, _), pytest.raises(httpx.LocalProtocolError):
        client.get("/", headers={"x-own": value})


def test_closing_the_client_ends_what_another_thread_reads() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        client = open_client(ClientOptions(60.0))
        ended: list[Exception] = []

        def read() -> None:
            try:
                client.get(f"http://127.0.0.1:{listening.getsockname()[1]}")
            except httpx.HTTPError as error:
                ended.append(error)

        thread = threading.Thread(target=read)
        thread.start()
        connection, _ = listening.accept()
        with connection:
            connection.recv(1 << 16)
            client.close()
            thread.join(10)
    assert [str(error) for error in ended] == ["EOF"]


def test_proxies_of_the_environment_are_used_where_they_are_wanted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    server = Server([[OK]])
    monkeypatch.setenv("http_proxy", server.url)
    with open_client(ClientOptions(5.0, proxies=True)) as client:
        assert client.get("http://cluster.example/a").content == b"body"
    server.close()
    assert server.requests[0].startswith(b"GET http://cluster.example/a HTTP/1.1\r\n")


def test_a_transport_alone_uses_proxies_too_where_they_are_wanted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    server = Server([[OK]])
    monkeypatch.setenv("http_proxy", server.url)
    with open_transport(ClientOptions(5.0, proxies=True)) as transport:
        response = transport.handle_request(httpx.Request("GET", "http://cluster.example/a"))
        assert response.read() == b"body"
        response.close()
    server.close()
    assert server.requests[0].startswith(b"GET http://cluster.example/a HTTP/1.1\r\n")
