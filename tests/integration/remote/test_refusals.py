"""How a client takes it that a server is busy, or does not accept its token."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from kcm import errors
from kcm.store.remote.credentials import Credential, Identity
from kcm.store.remote.kubeconfig import ClusterConnection
from kcm.store.remote.rest import RestClient, ServerBusy
from kcm.testing.clock import FakeClock


class Server(ThreadingHTTPServer):
    """Answers with the given codes, each with a Retry-After if it has one, and then with 200."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.answers: list[tuple[int, str]] = []
        self.tokens: list[str] = []


class _Handler(BaseHTTPRequestHandler):
    server: Server

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        self.server.tokens.append(self.headers.get("authorization", ""))
        code, later = self.server.answers.pop(0) if self.server.answers else (200, "")
        self.send_response(code)
        if later:
            self.send_header("retry-after", later)
        self.send_header("content-length", "2")
        self.end_headers()
        self.wfile.write(b"{}")

    def log_message(self, format: str, *args: Any) -> None:
        """Logs nothing."""


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as running:
        thread = threading.Thread(target=running.serve_forever)
        thread.start()
        yield running
        running.shutdown()
        thread.join()


def open_client(server: Server, clock: FakeClock) -> RestClient:
    tokens = iter(("old", "new"))
    credential = Credential(lambda: Identity(next(tokens)), clock)
    url = f"http://127.0.0.1:{server.server_address[1]}"
    return RestClient(ClusterConnection(url, credential=credential), clock=clock)


@pytest.mark.parametrize("code", [429, 503])
def test_a_busy_server_is_asked_again_when_it_says_so(server: Server, code: int) -> None:
    clock = FakeClock()
    client = open_client(server, clock)
    server.answers = [(code, "2"), (code, "3")]
    began = clock.monotonic()
    assert client.request("POST", "/", body={}) == b"{}"
    assert (len(server.tokens), clock.monotonic() - began) == (3, 5.0)
    client.close()


def test_patience_ends(server: Server) -> None:
    clock = FakeClock()
    client = open_client(server, clock)
    server.answers = [(429, "4")] * 9
    began = clock.monotonic()
    with pytest.raises(ServerBusy):
        client.request("POST", "/", body={})
    assert (len(server.tokens), clock.monotonic() - began) == (3, 8.0)
    client.close()


def test_a_busy_server_that_names_no_time_is_left_to_the_queue(server: Server) -> None:
    client = open_client(server, FakeClock())
    server.answers = [(429, "")]
    with pytest.raises(ServerBusy):
        client.request("POST", "/", body={})
    assert len(server.tokens) == 1
    client.close()


def test_a_token_that_is_refused_is_read_anew_once(server: Server) -> None:
    client = open_client(server, FakeClock())
    server.answers = [(401, "")]
    assert client.request("POST", "/", body={}) == b"{}"
    assert server.tokens == ["Bearer old", "Bearer new"]
    server.answers = [(401, ""), (401, "")]
    client._connection.credential._read = lambda: Identity("newest")
    with pytest.raises(errors.ApiError):
        client.request("POST", "/", body={})
    assert server.tokens[2:] == ["Bearer new", "Bearer newest"]
    client.close()
