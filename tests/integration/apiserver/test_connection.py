"""Clients that are slow or send too much."""

from __future__ import annotations

import contextlib
import gc
import json
import socket
import ssl
from asyncio.selector_events import (  # type: ignore[attr-defined] # what a socket's transport is
    _SelectorSocketTransport as Transport,
)
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from uvicorn.protocols.http.httptools_impl import RequestResponseCycle

from kcm.apiserver.http import connection
from kcm.apiserver.http.connection import LimitedConnection
from kcm.apiserver.http.limits import Bodies, Limits
from kcm.apiserver.http.tls import TLSConnection
from kcm.apiserver.objects.watching import HttpWatch
from kcm.redisio.embedded import EmbeddedServer
from kcm.testing.builders import config_map
from kcm.testing.waiting import PATIENCE, until
from tests.integration.apiserver.serving import TOKEN, Live, live
from tests.new_objects import strip_store_fields

REVIEW = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
HEAD = b"GET /livez HTTP/1.1\r\nhost: localhost\r\n"


@pytest.fixture(scope="module")
def api(redis_server: EmbeddedServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    """Yields a server with short timeouts."""
    patient = connection.HEAD_TIMEOUT, connection.READ_TIMEOUT
    connection.HEAD_TIMEOUT = connection.READ_TIMEOUT = 0.5
    limits = Limits(2, 1, request_timeout=0.5)
    with live(redis_server.url, tmp_path_factory.mktemp("api"), limits=limits) as running:
        yield running
    connection.HEAD_TIMEOUT, connection.READ_TIMEOUT = patient


@contextlib.contextmanager
def wire(api: Live) -> Iterator[ssl.SSLSocket]:
    """Yields a TLS connection to the server."""
    context = ssl.create_default_context(cafile=str(api.kubeconfig.with_name("apiserver.crt")))
    port = int(api.url.rpartition(":")[2])
    with socket.socket() as plain:
        plain.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 64 * 1024)  # fixed, so that it fills
        plain.settimeout(PATIENCE)
        plain.connect(("127.0.0.1", port))
        with context.wrap_socket(plain, server_hostname="localhost") as secure:
            yield secure


def rest(given: ssl.SSLSocket) -> bytes:
    """Returns all data until the server closes the connection."""
    received = b""
    with contextlib.suppress(ConnectionError, ssl.SSLError):
        while part := given.recv(65536):
            received += part
    return received


def read_ok(given: ssl.SSLSocket) -> None:
    """Reads until a response with code 200 has begun. Fails if the connection is closed before."""
    received = b""
    while b"200 OK" not in received:
        part = given.recv(65536)
        assert part, received
        received += part


def is_served(api: Live, given: ssl.SSLSocket) -> bool:
    """Reports whether the server, which runs in this process, has the connection open."""
    server, client = int(api.url.rpartition(":")[2]), given.getsockname()[1]
    return any(
        (end.laddr.port, end.raddr.port) == (server, client)
        for end in psutil.Process().net_connections("tcp")
        if end.raddr
    )


@pytest.mark.parametrize("begin", [b"", b"GET", HEAD, b"\r\n"])
def test_a_head_that_does_not_end_ends_the_connection(api: Live, begin: bytes) -> None:
    with wire(api) as given:
        given.sendall(begin)
        assert rest(given) == b""


def test_a_second_head_has_its_time_too(api: Live) -> None:
    with wire(api) as given:
        for _ in range(2):
            given.sendall(HEAD + b"\r\n")
            read_ok(given)
            with wire(api) as later:  # a head's time is over: `given` is idle, and that is no head
                assert rest(later) == b""
        given.sendall(HEAD)
        assert b"200 OK" not in rest(given)


@pytest.mark.parametrize(
    "filling", [b"x: " + b"y" * 300_000, b"\r\n".join(b"x%d: y" % i for i in range(600))]
)
def test_a_head_too_large_gets_431(api: Live, filling: bytes) -> None:
    with wire(api) as given:
        with contextlib.suppress(ConnectionError, ssl.SSLError):
            given.sendall(HEAD + filling + b"\r\n\r\n")
        assert rest(given).startswith(b"HTTP/1.1 431 ")
    assert api.client.get("/livez").status_code == 200


def test_a_body_that_does_not_end_gets_504(api: Live) -> None:
    with wire(api) as given:
        given.sendall(
            b"POST /api/v1/namespaces HTTP/1.1\r\nhost: localhost\r\ncontent-length: 99\r\n"
            b"authorization: Bearer " + TOKEN.encode() + b"\r\n\r\n{"
        )
        answer = given.recv(65536)
        assert answer.startswith(b"HTTP/1.1 504 ")
        body = json.loads(answer.partition(b"\r\n\r\n")[2] or given.recv(65536))
        assert body["reason"] == "Timeout"
        given.sendall(b"{")
        assert rest(given) == b""


@pytest.mark.parametrize(
    "extra",
    [b"content-length: 5\r\ntransfer-encoding: chunked\r\n",
     b"content-length: 5\r\ncontent-length: 6\r\n", b"transfer-encoding: chunked, identity\r\n",
     b"transfer-encoding : chunked\r\n", b"content-length: +5\r\n", b"x: a\nauthorization: b\r\n"],
)  # fmt: skip
def test_requests_that_two_readers_could_read_differently_are_refused(
    api: Live, extra: bytes
) -> None:
    with wire(api) as given:
        given.sendall(
            b"POST /api/v1/namespaces HTTP/1.1\r\nhost: localhost\r\n" + extra + b"\r\n"
            b"0\r\n\r\nGET /api HTTP/1.1\r\nhost: localhost\r\n\r\n"
        )
        assert rest(given).startswith(b"HTTP/1.1 400 ")


@pytest.mark.parametrize("name", ["host: localhost", "authorization: Bearer " + TOKEN])
def test_a_second_host_or_authorization_header_is_refused(api: Live, name: str) -> None:
    with wire(api) as given:
        given.sendall(
            b"GET /api HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n"
            + f"{name}\r\n{name}\r\n\r\n".encode()
        )
        assert rest(given).startswith(b"HTTP/1.1 400 ")


def test_trailers_are_no_headers(api: Live) -> None:
    with wire(api) as given:
        given.sendall(
            b"GET /api HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n"
            b"transfer-encoding: chunked\r\n\r\n0\r\n"
            b"authorization: Bearer " + TOKEN.encode() + b"\r\n\r\n"
        )
        assert rest(given).startswith(b"HTTP/1.1 401 ")


def test_a_trailer_without_end_ends_the_connection(
    api: Live, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "MAX_MESSAGE", 100_000)
    with wire(api) as given:
        with contextlib.suppress(ConnectionError, ssl.SSLError):
            given.sendall(
                b"POST /api/v1/namespaces HTTP/1.1\r\nhost: localhost\r\n"
                b"authorization: Bearer " + TOKEN.encode() + b"\r\n"
                b"transfer-encoding: chunked\r\n\r\n0\r\nx: " + b"y" * 1_000_000
            )
        assert rest(given) == b""  # not even 504, which would come for a body without end


def test_who_does_not_read_is_cut(api: Live) -> None:
    # More than the kernel's buffers hold; a request of half a second may be too short for one.
    for number in range(12):
        api.store.create(strip_store_fields(config_map(f"big{number}", data={"a": "x" * 900_000})))
    with contextlib.ExitStack() as stack:
        connections: list[ssl.SSLSocket] = []

        def is_answered() -> bool:
            """Asks on a new connection. A busy machine may take longer than a request may."""
            connections.append(stack.enter_context(wire(api)))
            connections[-1].sendall(
                b"GET /api/v1/configmaps HTTP/1.1\r\nhost: localhost\r\n"
                b"authorization: Bearer " + TOKEN.encode() + b"\r\n\r\n"
            )
            return connections[-1].recv(len(b"HTTP/1.1 200")) == b"HTTP/1.1 200"

        until(is_answered, "a list")
        until(lambda: not is_served(api, connections[-1]), "the cut")
        assert len(rest(connections[-1])) < 10_000_000


def test_bodies_that_come_slowly_take_no_place_and_one_user_has_so_many(
    redis_server: EmbeddedServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Bodies of one user hang. The user's next request gets 429, and other users are served."""
    monkeypatch.setattr(Bodies, "MOST_COMING", 2)
    with contextlib.ExitStack() as stack:
        api = stack.enter_context(live(redis_server.url, tmp_path, limits=Limits(2, 1)))
        bob, jane = (
            stack.enter_context(api.as_user(token)) for token in ("bobs-token", "janes-token")
        )
        for _ in range(2):
            stack.enter_context(wire(api)).sendall(
                f"POST {REVIEW} HTTP/1.1\r\nhost: localhost\r\ncontent-length: 9\r\n"
                "authorization: Bearer bobs-token\r\n\r\n".encode()
            )
        until(lambda: bob.post(REVIEW, json={}).status_code == 429, "the arrival of both")
        response = bob.post(REVIEW, json={})
        assert response.headers["retry-after"] == "1"
        assert response.json()["reason"] == "TooManyRequests"
        assert jane.post(REVIEW, json={"spec": {}}).status_code != 429
        assert api.request("POST", "/api/v1/namespaces", {"metadata": {"name": "a"}}).is_success


def test_a_body_that_does_not_come_is_not_waited_for(api: Live) -> None:
    with wire(api) as given:
        given.sendall(
            b"POST /api/v1/namespaces HTTP/1.1\r\nhost: localhost\r\ncontent-length: 9\r\n"
            b"authorization: Bearer " + TOKEN.encode() + b"\r\n\r\n"
        )
        assert given.recv(65536).startswith(b"HTTP/1.1 504")


def count_parts() -> int:
    """Returns how many parts of connections are in memory."""
    parts = (LimitedConnection, TLSConnection, HttpWatch, RequestResponseCycle, Transport)
    return sum(1 for each in gc.get_objects() if type(each) in parts)


def test_a_connection_is_freed_when_it_ends_and_not_by_a_collection(api: Live) -> None:
    """Collections come by number, so what they have to free may be of any size until then."""
    head = f"HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {TOKEN}\r\n"
    requests = [
        f"GET /api/v1/namespaces {head}\r\n",
        f"GET /api/v1/namespaces?watch=1 {head}\r\n",
        f"GET /api/v1/nothing {head}\r\n",
        "GET /api/v1/namespaces HTTP/1.1\r\nhost: localhost\r\n\r\n",  # 401
        *(
            f"POST /api/v1/namespaces {head}content-length: {len(body)}\r\n\r\n{body}"
            for body in ('{"metadata":', '{"metadata": 5}', '{"metadata": {"name": "A_"}}', "{}")
        ),
    ]
    api.client.get("/livez")
    gc.collect()
    gc.disable()
    try:
        before = count_parts()
        for request in requests:
            with wire(api) as given:
                given.sendall(request.encode())
                assert given.recv(10).startswith(b"HTTP/1.1")
        for data in (b"", b"garbage" * 1000):
            with socket.create_connection(("127.0.0.1", int(api.url.rpartition(":")[2]))) as plain:
                plain.sendall(data)
        until(lambda: count_parts() <= before, "the end of all of them")
    finally:
        gc.enable()


def test_watches_do_not_count(api: Live) -> None:
    with contextlib.ExitStack() as stack:
        for _ in range(4):
            path, params = "/api/v1/pods", {"watch": "1"}
            stack.enter_context(api.client.stream("GET", path, params=params))
        assert api.client.get("/api/v1/namespaces").status_code == 200


def test_a_stop_does_not_wait_for_clients_that_keep_a_connection(
    redis_server: EmbeddedServer, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with contextlib.ExitStack() as clients, live(redis_server.url, tmp_path) as running:
        given = clients.enter_context(wire(running))
        given.sendall(HEAD + b"\r\n")
        assert given.recv(100).startswith(b"HTTP/1.1 200")
    assert "timeout graceful shutdown exceeded" not in caplog.text
