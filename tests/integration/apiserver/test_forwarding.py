"""What servers get of what clients send: pods behind a proxy, and the server of another API."""

from __future__ import annotations

import base64
import json
import shutil
import socket
import ssl
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from kcm.redisio.embedded import EmbeddedServer
from tests.integration.apiserver.backend import ADDRESS, Backend, backend
from tests.integration.apiserver.extension import (
    BASE,
    GROUP,
    SERVICES,
    VERSION,
    FrontProxy,
    api_service,
    make_service,
    wait_for_reason,
)
from tests.integration.apiserver.serving import TOKEN, Live, live

PODS = "/api/v1/namespaces/default/pods"
FORGED = (
    "X-Remote-User: root", "X_Remote_User: root", "X-Remote_Group: system:masters",
    "x.remote.user: root", "Impersonate_User: root", "HTTP2-Settings: AAMAAABk",
)  # fmt: skip
CHAT = "base64url.bearer.authorization.k8s.io." + base64.urlsafe_b64encode(TOKEN.encode()).decode()
WEBSOCKET = (
    "Upgrade: websocket", "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
    "Sec-WebSocket-Version: 13", f"Sec-WebSocket-Protocol: {CHAT.rstrip('=')}, chat",
)  # fmt: skip


@pytest.fixture(scope="module")
def proxy() -> Iterator[FrontProxy]:
    folder = Path(tempfile.mkdtemp(prefix="kcm-proxy-"))
    yield FrontProxy.make(folder)
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="module")
def api(redis_server: EmbeddedServer, proxy: FrontProxy) -> Iterator[Live]:
    with live(redis_server.url, proxy.folder, aggregation=proxy.options()) as running:
        yield running


@pytest.fixture(scope="module")
def pod(api: Live) -> Iterator[Backend]:
    """A server that is a pod."""
    with backend() as running:
        ports = [{"containerPort": running.server_port}]
        container = {"name": "c", "image": "x", "ports": ports}
        api.create(PODS, {"metadata": {"name": "seen"}, "spec": {"containers": [container]}})
        status = {"podIP": ADDRESS, "podIPs": [{"ip": ADDRESS}], "phase": "Running"}
        assert api.patch(f"{PODS}/seen/status", {"status": status}).status_code == 200
        yield running


@pytest.fixture(scope="module")
def extension(api: Live, proxy: FrontProxy) -> Iterator[Backend]:
    """A server of another API."""
    certificate, key = proxy.servers.server("seen.default.svc")
    with backend((Path(certificate), Path(key))) as running:
        make_service(api, "seen", ADDRESS)
        api.create(SERVICES, api_service("seen", running.server_port, proxy.bundle))
        wait_for_reason(api, f"{VERSION}.{GROUP}", "Passed")
        yield running


def send(api: Live, path: str, *fields: str) -> tuple[bytes, bytes]:
    """Sends a request whose head is exactly this; returns the head and the body of the response."""
    parts = urlsplit(api.url)
    context = ssl.create_default_context(cafile=str(api.kubeconfig.with_name("apiserver.crt")))
    lines = [f"GET {path} HTTP/1.1", f"Host: {parts.netloc}", *fields, "", ""]
    with (
        socket.create_connection((parts.hostname or "", parts.port or 0), timeout=10) as plain,
        context.wrap_socket(plain, server_hostname=parts.hostname) as connection,
    ):
        connection.sendall("\r\n".join(lines).encode("latin-1"))
        reader = connection.makefile("rb")
        head = b"".join(iter(reader.readline, b"\r\n"))
        length = next(
            (line for line in head.lower().splitlines() if line.startswith(b"content-length:")),
            b":0",
        )
        return head, reader.read(int(length.partition(b":")[2]))


def seen_by(server: Backend, path: str) -> list[tuple[str, str]]:
    """Returns the headers of the last request for a path, besides which others may be made."""
    pairs: list[tuple[str, str]] = last(server, path)["pairs"]
    return pairs


def last(server: Backend, path: str) -> dict[str, Any]:
    return next(one for one in reversed(server.asked) if one["path"].partition("?")[0] == path)


def told(pairs: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """Returns what headers say about who the client is."""
    words = ("remote", "impersonate", "authorization")
    return [(name, value) for name, value in pairs if any(word in name for word in words)]


ADMIN = [
    ("x-remote-user", "kubernetes-admin"), ("x-remote-group", "system:masters"),
    ("x-remote-group", "system:authenticated"),
]  # fmt: skip
BEARER = f"Authorization: Bearer {TOKEN}"


@pytest.mark.parametrize(
    "connection",
    ["close", "close, X-Remote-User, X-Remote-Group", "X-Forwarded-For, X-Forwarded-Uri, Host"],
)
def test_nobody_forges_or_takes_away_who_sends_a_request(
    api: Live, pod: Backend, extension: Backend, connection: str
) -> None:
    fields = (BEARER, f"Connection: {connection}", *FORGED)
    assert send(api, f"{PODS}/seen/proxy/x", *fields)[0].startswith(b"HTTP/1.1 200")
    assert told(seen_by(pod, "/x")) == []
    assert send(api, f"{BASE}/x", *fields)[0].startswith(b"HTTP/1.1 200")
    assert told(seen_by(extension, f"{BASE}/x")) == ADMIN
    for pairs in (seen_by(pod, "/x"), seen_by(extension, f"{BASE}/x")):
        names = [name for name, _ in pairs]
        assert "http2-settings" not in names
        assert names.count("host") == names.count("x-forwarded-for") == 1
        assert dict(pairs).get("connection", "close") == "close"


def test_an_upgrade_has_neither_tokens_nor_options_of_the_client_s_connection(
    api: Live, pod: Backend, extension: Backend
) -> None:
    fields = (BEARER, "Connection: Upgrade, X-Remote-User, X-Forwarded-For", *WEBSOCKET, *FORGED)
    ways = ((f"{PODS}/seen/proxy/ws", pod, "/ws"), (f"{BASE}/ws", extension, f"{BASE}/ws"))
    for path, server, arrives in ways:
        head, _ = send(api, path, *fields)
        assert head.startswith(b"HTTP/1.1 101"), head
        pairs = seen_by(server, arrives)
        kept = dict(pairs)
        assert (kept["connection"], kept["upgrade"]) == ("Upgrade", "websocket")
        assert kept["sec-websocket-protocol"] == "chat"
        assert kept["x-forwarded-for"] == "127.0.0.1"
        assert told(pairs) == (ADMIN if server is extension else [])
        assert not [value for _, value in pairs if TOKEN in value or "bearer" in value]


def test_a_connection_does_not_become_one_of_http2(
    api: Live, pod: Backend, extension: Backend
) -> None:
    fields = (
        BEARER, "Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: AAMAAABk",
    )  # fmt: skip
    before = len(pod.asked), len(extension.asked)
    for path in (f"{PODS}/seen/proxy/h2c", f"{BASE}/h2c"):
        head, body = send(api, path, *fields)
        assert head.startswith(b"HTTP/1.1 400"), head
        assert b"an upgrade to h2c is not passed on" in body
    assert "h2c" not in json.dumps([pod.asked[before[0] :], extension.asked[before[1] :]])


@pytest.mark.parametrize(
    ("query", "arrives"),
    [
        ("a=%2F+%20&a=&b", "a=%2F+%20&a=&b"),
        ("q={x}|[y]", "q={x}|[y]"),
        ("path=../..//&x=?", "path=../..//&x=?"),
    ],
)
def test_queries_arrive_as_they_were_sent(
    api: Live, pod: Backend, extension: Backend, query: str, arrives: str
) -> None:
    ways = ((f"{PODS}/seen/proxy/q", pod, "/q"), (f"{BASE}/q", extension, f"{BASE}/q"))
    for path, server, seen in ways:
        head, _ = send(api, f"{path}?{query}", BEARER)
        assert head.startswith(b"HTTP/1.1 200"), head
        assert last(server, seen)["path"].partition("?")[2] == arrives


def test_a_user_whose_name_no_header_can_have_is_refused_with_a_sentence(
    api: Live, extension: Backend
) -> None:
    before = len([one for one in extension.asked if one["path"].endswith("/named")])
    fields = (BEARER, "Impersonate-User: root\xc2\xa0", "Impersonate-Group: system:masters")
    head, body = send(api, f"{BASE}/named", *fields)
    assert head.startswith(b"HTTP/1.1 503"), head
    assert body == (
        b'error trying to reach service: net/http: invalid header field value for "X-Remote-User"\n'
    )
    assert len([one for one in extension.asked if one["path"].endswith("/named")]) == before
