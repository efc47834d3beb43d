"""How many connections and watches one client may have."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import httpx
import pytest

from kcm.apiserver.http.limits import Limits
from kcm.redisio.embedded import EmbeddedServer
from kcm.testing.waiting import PATIENCE, until
from tests.integration.apiserver.serving import Live, live

UNAUTHENTICATED, WATCHES = 8, 2
PATH = "/api/v1/namespaces/default/configmaps"


@pytest.fixture(scope="module")
def api(redis_server: EmbeddedServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    limits = Limits(
        max_watches_per_user=WATCHES,
        max_unauthenticated_connections_per_address=UNAUTHENTICATED,
    )
    with live(redis_server.url, tmp_path_factory.mktemp("limits"), limits=limits) as running:
        named = {"name": "kubernetes"}  # what Events about the server are about
        spec = {"ports": [{"port": 443}]}
        running.create("/api/v1/namespaces/default/services", {"metadata": named, "spec": spec})
        role = {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["list", "watch"]}
        rbac = "/apis/rbac.authorization.k8s.io/v1"
        running.create(f"{rbac}/clusterroles", {"metadata": {"name": "watch"}, "rules": [role]})
        group = "rbac.authorization.k8s.io"
        running.create(
            f"{rbac}/clusterrolebindings",
            {
                "metadata": {"name": "watch"},
                "subjects": [
                    {"kind": "User", "apiGroup": group, "name": name} for name in ("jane", "bob")
                ],
                "roleRef": {"kind": "ClusterRole", "apiGroup": group, "name": "watch"},
            },
        )
        yield running


def connect(api: Live) -> socket.socket:
    """Returns a TCP connection on which nothing is sent."""
    return socket.create_connection(("127.0.0.1", int(api.url.rpartition(":")[2])), PATIENCE)


def is_refused(connection: socket.socket) -> bool:
    """Reports whether the server closes a connection at once. It sends nothing by itself."""
    connection.settimeout(0.2)
    try:
        return connection.recv(1) == b""
    except TimeoutError:
        return False
    except ConnectionError:
        return True


def watch(stack: ExitStack, client: httpx.Client) -> httpx.Response:
    return stack.enter_context(client.stream("GET", PATH, params={"watch": "1"}))


def wait_for_event(api: Live, reason: str, message: str) -> None:
    """Waits for an Event about the server's Service."""

    def is_there() -> bool:
        return any(
            (event["reason"], event["involvedObject"]["name"]) == (reason, "kubernetes")
            and event["message"].startswith(message)
            for event in api.get("/api/v1/namespaces/default/events")["items"]
        )

    until(is_there, f"the Event {reason}")


def test_a_user_has_so_many_watches_and_others_have_theirs(api: Live) -> None:
    with ExitStack() as stack:
        jane, bob = (
            stack.enter_context(api.as_user(token)) for token in ("janes-token", "bobs-token")
        )
        until(lambda: jane.get(PATH).status_code == 200, "her rights")
        with ExitStack() as open_watches:
            for _ in range(WATCHES):
                assert watch(open_watches, jane).status_code == 200
            refused = jane.get(PATH, params={"watch": "1"})
            assert (refused.status_code, refused.headers["retry-after"]) == (429, "1")
            assert refused.json()["reason"] == "TooManyRequests"
            assert refused.json()["message"] == "Too many requests, please try again later."
            assert jane.get(PATH).status_code == 200
            for client in (bob, *(WATCHES + 1) * [api.client]):  # an administrator has any number
                assert watch(open_watches, client).status_code == 200
        assert "kcm_apiserver_watches_refused_total 1.0" in api.client.get("/metrics").text
        wait_for_event(api, "TooManyWatches", 'user "jane" has 2 watches open')

        def is_let_in() -> bool:
            with ExitStack() as again:
                return watch(again, jane).status_code == 200

        until(is_let_in, "a place")


def test_an_address_has_so_many_connections_without_credentials(api: Live) -> None:
    with ExitStack() as stack:
        before = stack.enter_context(api.as_user("janes-token"))
        before.get("/livez")
        idle = [stack.enter_context(connect(api)) for _ in range(UNAUTHENTICATED)]
        with connect(api) as beyond:
            assert beyond.recv(1) == b""
        # Clients that have shown who they are go on, however many there are.
        assert before.get("/livez").status_code == 200
        metrics = api.client.get("/metrics").text
        assert f"kcm_apiserver_connections_unauthenticated {float(UNAUTHENTICATED)}" in metrics
        assert "kcm_apiserver_connections_refused_total 1.0" in metrics
        wait_for_event(api, "TooManyConnections", "127.0.0.1 has 8 connections without")
        for one in idle:
            one.close()

        def is_let_in() -> bool:
            with connect(api) as again:
                return not is_refused(again)

        until(is_let_in, "a place")


def test_connections_with_credentials_take_none_of_these_places(api: Live) -> None:
    with ExitStack() as stack:
        for _ in range(UNAUTHENTICATED + 2):
            client = stack.enter_context(api.as_user("bobs-token"))
            until(partial(answers, client), "an answer")
        assert answers(api.client)


def answers(client: httpx.Client) -> bool:
    """Reports whether a client gets an answer. Connections of other tests may still end."""
    try:
        return client.get("/livez").status_code == 200
    except httpx.TransportError:
        return False


def test_a_handshake_that_does_not_end_ends_the_connection(
    redis_server: EmbeddedServer, tmp_path: Path
) -> None:
    limits = Limits(tls_handshake_timeout=0.5)
    with live(redis_server.url, tmp_path, limits=limits) as api:
        for begin in (b"", b"\x16\x03\x01\x02\x00\x01"):  # the rest of a ClientHello does not come
            with connect(api) as slow:
                slow.sendall(begin)
                assert slow.recv(1) == b""
        assert "apiserver_tls_handshake_errors_total 2.0" in api.client.get("/metrics").text
