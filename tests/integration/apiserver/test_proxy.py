"""pods/proxy, services/proxy and nodes/proxy, with a server behind them."""

from __future__ import annotations

import gzip
import hashlib
import socket
import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest

from kcm.api.simulated import SIMULATOR_LABEL
from kcm.testing.waiting import until
from tests.integration.apiserver.backend import ADDRESS, Backend, backend
from tests.integration.apiserver.kubelets import create_node, point
from tests.integration.apiserver.serving import TOKEN, Live

PODS = "/api/v1/namespaces/default/pods"
SERVICES = "/api/v1/namespaces/default/services"


@pytest.fixture(scope="module")
def server() -> Iterator[Backend]:
    with backend() as running:
        yield running


@pytest.fixture(scope="module")
def proxied(api: Live, server: Backend) -> str:
    """Returns the path of the proxy of a pod that is the server."""
    make_pod(api, "proxied", server.server_port)
    return f"{PODS}/proxied/proxy"


def make_pod(api: Live, name: str, port: int, address: str = ADDRESS, node: str = "") -> None:
    container = {"name": "c", "image": "x", "ports": [{"name": "web", "containerPort": port}]}
    spec = {"nodeName": node, "containers": [container]}
    api.create(PODS, {"metadata": {"name": name}, "spec": spec})
    status = {"podIP": address, "podIPs": [{"ip": address}], "phase": "Running"}
    changed = api.patch(f"{PODS}/{name}/status", {"status": status})
    assert changed.status_code == 200, changed.text


def failure(response: httpx.Response, code: int, message: str) -> None:
    assert response.status_code == code, response.text
    assert message in response.json()["message"]


@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"])
def test_every_method_reaches_the_pod_with_its_body(
    api: Live, proxied: str, server: Backend, method: str
) -> None:
    body = b"" if method in {"GET", "OPTIONS"} else b"some body"
    response = api.client.request(method, f"{proxied}/a/b", content=body, params={"q": "1 2"})
    assert response.status_code == 200, response.text
    seen = response.json()
    assert (seen["method"], seen["path"], seen["size"]) == (method, "/a/b?q=1+2", len(body))
    assert "authorization" not in seen["headers"]
    assert seen["headers"]["host"] == urlsplit(api.url).netloc
    assert seen["headers"]["x-forwarded-uri"] == f"{proxied}/a/b"
    assert seen["headers"]["x-forwarded-for"] == "127.0.0.1"
    assert "access-control-allow-origin" not in response.headers
    assert response.headers["cache-control"] == "no-cache, private"


def test_a_head_request_has_the_headers_alone(api: Live, proxied: str, server: Backend) -> None:
    response = api.client.head(f"{proxied}/page")
    assert (response.status_code, response.content) == (200, b"")
    assert server.asked[-1]["method"] == "HEAD"


def test_the_root_without_a_slash_is_led_to_one_with_it(api: Live, proxied: str) -> None:
    response = api.client.get(proxied, params={"a": "b"})
    assert (response.status_code, response.headers["location"]) == (301, f"{proxied}/?a=b")
    assert api.client.get(f"{proxied}/").json()["path"] == "/"
    assert api.client.post(proxied).json()["path"] == "/"


def test_names_may_be_those_of_the_path(api: Live, server: Backend) -> None:
    make_pod(api, "proxy", server.server_port)
    assert api.client.get(f"{PODS}/proxy/proxy/proxy/x").json()["path"] == "/proxy/x"
    moved = api.client.get(f"{PODS}/proxy/proxy/moved")
    assert moved.headers["location"] == f"{PODS}/proxy/proxy/other/"


@pytest.mark.parametrize(
    ("path", "expected"),
    [("/a//b/", "/a/b/"), ("/a%2F..%2Fb", "/b"), ("/%C3%A4 b", "/%C3%A4%20b"),
     ("/x/proxy/y", "/x/proxy/y")],
)  # fmt: skip
def test_paths_are_cleaned(api: Live, proxied: str, path: str, expected: str) -> None:
    assert api.client.get(f"{proxied}{path}").json()["path"] == expected


def test_links_and_redirects_lead_back_through_the_proxy(api: Live, proxied: str) -> None:
    page = api.client.get(f"{proxied}/page")
    assert page.text == (
        f'<html><a href="{proxied}/other">o</a><a href="https://example.com/">e</a></html>'
    )
    with api.client.stream("GET", f"{proxied}/packed") as packed:
        assert gzip.decompress(b"".join(packed.iter_raw())).decode() == page.text
    moved = api.client.get(f"{proxied}/moved")
    assert (moved.status_code, moved.headers["location"]) == (302, f"{proxied}/other/")
    assert api.client.get(f"{proxied}/teapot").status_code == 418


def test_large_bodies_are_streamed_in_both_directions(
    api: Live, proxied: str, server: Backend
) -> None:
    piece = bytes(range(256)) * 4096

    def pieces() -> Iterator[bytes]:
        yield from (piece for _ in range(8))

    sent = api.client.post(f"{proxied}/x", content=pieces(), timeout=60)
    assert sent.json()["size"] == 8 * len(piece)
    assert sent.json()["digest"] == hashlib.sha256(piece * 8).hexdigest()
    sized = api.client.put(f"{proxied}/x", content=piece * 7, timeout=60)
    assert sized.json()["size"] == 7 * len(piece)
    assert len(api.client.get(f"{proxied}/large", timeout=60).content) == 8 * 1024 * 1024


def test_a_response_that_is_cut_is_not_passed_off_as_complete(api: Live, proxied: str) -> None:
    with pytest.raises(httpx.TransportError):
        api.client.get(f"{proxied}/cut")


def test_a_client_that_leaves_ends_the_servers_request(
    api: Live, proxied: str, server: Backend
) -> None:
    with api.client.stream("GET", f"{proxied}/endless") as response:
        next(response.iter_raw())
    assert server.left.wait(10)


def upgrade(api: Live, path: str, *fields: str) -> tuple[ssl.SSLSocket, bytes]:
    """Returns the connection after an upgrade request, and the head of the response."""
    parts = urlsplit(api.url)
    context = ssl.create_default_context(cafile=str(api.kubeconfig.with_name("apiserver.crt")))
    plain = socket.create_connection((parts.hostname, parts.port), timeout=10)
    connection = context.wrap_socket(plain, server_hostname=parts.hostname)
    lines = [
        f"GET {path} HTTP/1.1", f"Host: {parts.netloc}", f"Authorization: Bearer {TOKEN}",
        "Connection: Upgrade", *fields, "", "",
    ]  # fmt: skip
    connection.sendall("\r\n".join(lines).encode())
    head = b""
    while b"\r\n\r\n" not in head:
        data = connection.recv(4096)
        if not data:
            break
        head += data
    return connection, head


WEBSOCKET = (
    "Upgrade: websocket", "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
    "Sec-WebSocket-Version: 13",
)  # fmt: skip


def test_a_websocket_is_passed_on(api: Live, proxied: str, server: Backend) -> None:
    connection, head = upgrade(api, f"{proxied}/ws?x=1", *WEBSOCKET)
    with connection:
        assert head.startswith(b"HTTP/1.1 101 ")
        assert b"s3pPLMBiTxaQ9kYGzzhZRbK+xOo=" in head
        connection.sendall(b"abc")
        assert connection.recv(10) == b"cba"
    assert server.asked[-1]["path"] == "/ws?x=1"
    assert "Authorization" not in server.asked[-1]["headers"]


@pytest.mark.parametrize(
    ("path", "code"), [("/teapot", b"418"), ("/x", b"500"), ("/moved", b"500")]
)
def test_an_upgrade_that_the_server_declines_is_an_error(
    api: Live, proxied: str, path: str, code: bytes
) -> None:
    connection, head = upgrade(api, f"{proxied}{path}", *WEBSOCKET)
    connection.close()
    assert head.startswith(b"HTTP/1.1 " + code)


# after TestResourceLocation in pkg/registry/core/pod/strategy_test.go and TestSplitSchemeNamePort
@pytest.mark.parametrize(
    ("name", "code", "message"),
    [
        ("proxied:{port}", 200, ""), ("http:proxied:{port}", 200, ""), ("proxied:", 200, ""),
        (":{port}", 400, 'invalid pod request ":'),
        ("ftp:proxied:{port}", 400, "invalid pod request"),
        ("a:b:c:d", 400, "invalid pod request"),
        ("proxied:web", 503, "error trying to reach service: 'web' is not a valid port"),
        ("proxied:" + "1" * 9000, 503, "is not a valid port"),
        ("proxied:0", 503, "is not a valid port"), ("proxied:1", 503, "error trying to reach"),
        ("https:proxied:{port}", 503, "error trying to reach service"),
        ("missing", 404, 'pods "missing" not found'),
    ],
)  # fmt: skip
@pytest.mark.usefixtures("proxied")
def test_the_name_may_have_a_scheme_and_a_port(
    api: Live, server: Backend, name: str, code: int, message: str
) -> None:
    shown = name.format(port=server.server_port)
    response = api.client.get(f"{PODS}/{shown}/proxy/x")
    if code == 200:
        assert response.status_code == 200, response.text
    else:
        failure(response, code, message.format(port=server.server_port))


@pytest.mark.parametrize(
    "address", ["127.0.0.1", "169.254.169.254", "0.0.0.0", "::1", "fe80::1", "224.0.0.1",
                "::ffff:127.0.0.1"],
)  # fmt: skip
def test_addresses_that_are_no_pods_are_refused(api: Live, server: Backend, address: str) -> None:
    api.client.delete(f"{PODS}/odd-address", params={"gracePeriodSeconds": "0"})
    make_pod(api, "odd-address", server.server_port)
    status = api.patch(
        f"{PODS}/odd-address/status", {"status": {"podIP": address, "podIPs": [{"ip": address}]}}
    )
    if status.status_code == 200:  # others are refused when the status is written
        failure(api.client.get(f"{PODS}/odd-address/proxy/x"), 400, "address not allowed")


def test_pods_speak_tls_with_certificates_of_their_own(api: Live, tmp_path: Path) -> None:
    from kcm.apiserver import credentials

    made = credentials.certificate(tmp_path)
    with backend((made.certificate, made.key)) as secure:
        make_pod(api, "secure", secure.server_port)
        assert api.client.get(f"{PODS}/https:secure:/proxy/x").json()["path"] == "/x"


def make_service(api: Live, name: str, port: int, subsets: list[dict[str, Any]] | None) -> str:
    ports = [{"name": "web", "port": 80, "targetPort": port}]
    api.create(SERVICES, {"metadata": {"name": name}, "spec": {"ports": ports}})
    if subsets is not None:
        where = "/api/v1/namespaces/default/endpoints"
        api.create(where, {"metadata": {"name": name}, "subsets": subsets})
    return f"{SERVICES}/{name}"


def refers_to(pod: str, address: str = ADDRESS) -> dict[str, Any]:
    reference = {"kind": "Pod", "name": pod, "namespace": "default"}
    return {"ip": address, "targetRef": reference}


# after TestServiceRegistryResourceLocation in pkg/registry/core/service/storage/storage_test.go
def test_a_service_leads_to_a_ready_pod_of_its_own(
    api: Live, proxied: str, server: Backend
) -> None:
    ports = [{"name": "web", "port": server.server_port}]
    subsets = [{"addresses": [refers_to("proxied")], "ports": ports}]
    service = make_service(api, "svc", server.server_port, subsets)
    for name in ("svc:80", "svc:web", "http:svc:web", "http:svc:80"):
        path = f"{SERVICES}/{name}/proxy/x"
        assert api.client.get(path).json()["headers"]["x-forwarded-uri"] == path
    failure(api.client.get(f"{service}/proxy/"), 503, 'no endpoints available for service "svc"')
    failure(
        api.client.get(f"{service}:81/proxy/"), 503, 'no service port 81 found for service "svc"'
    )
    failure(api.client.get(f"{service}:other/proxy/"), 503, "no endpoints available")
    failure(api.client.get(f"{SERVICES}/a:b:c:d/proxy/"), 400, "invalid service request")
    failure(api.client.get(f"{SERVICES}/none:80/proxy/"), 404, 'services "none" not found')


@pytest.mark.parametrize(
    ("name", "addresses"),
    [
        ("svc-foreign", [{"ip": ADDRESS}]),
        ("svc-nobody", [refers_to("no-such-pod")]),
        ("svc-elsewhere", [refers_to("proxied", "127.77.0.8")]),
        ("svc-none", None),
    ],
)
def test_endpoints_that_are_no_pods_of_the_namespace_do_not_count(
    api: Live, proxied: str, server: Backend, name: str, addresses: list[Any] | None
) -> None:
    ports = [{"name": "web", "port": server.server_port}]
    subsets = None if addresses is None else [{"addresses": addresses, "ports": ports}]
    service = make_service(api, name, server.server_port, subsets)
    failure(api.client.get(f"{service}:web/proxy/"), 503, "no endpoints available for service")


def test_slices_that_somebody_wrote_lead_there_too(
    api: Live, proxied: str, server: Backend
) -> None:
    service = make_service(api, "svc-slices", server.server_port, None)
    target = {"addresses": [ADDRESS], "targetRef": refers_to("proxied")["targetRef"]}
    api.create(
        "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices",
        {
            "metadata": {"name": "s1", "labels": {"kubernetes.io/service-name": "svc-slices"}},
            "addressType": "IPv4",
            "ports": [{"name": "web", "port": server.server_port}],
            "endpoints": [target],
        },
    )
    until(lambda: api.client.get(f"{service}:web/proxy/x").json().get("path") == "/x", "a slice")


def test_a_node_leads_to_its_kubelet_and_no_other_port_of_this_machine(
    api: Live, server: Backend
) -> None:
    create_node(api, "proxy-node", server.server_port, ADDRESS)
    for name in ("proxy-node", f"proxy-node:{server.server_port}"):
        seen = api.client.post(f"/api/v1/nodes/{name}/proxy/run/x", content=b"abc").json()
        assert (seen["method"], seen["path"], seen["size"]) == ("POST", "/run/x", 3)
    point(api, "proxy-node", "127.0.0.1", server.server_port)
    failure(api.client.get("/api/v1/nodes/proxy-node:1/proxy/"), 400, "address not allowed")


def test_a_kubelet_at_an_address_of_this_machine_must_prove_that_it_is_its_own(
    api: Live, server: Backend
) -> None:
    create_node(api, "stranger", server.server_port, proven=False)
    reached = len(server.asked)
    for address in ("127.0.0.1", ADDRESS, "localhost", "127.1", "2130706433", "0.0.0.0"):
        point(api, "stranger", address, server.server_port)
        answer = api.client.get("/api/v1/nodes/stranger/proxy/metrics")
        failure(answer, 400, "address not allowed")
    create_node(api, "moved", server.server_port - 1)  # the proof is for this port
    point(api, "moved", "127.0.0.1", server.server_port)
    failure(api.client.get("/api/v1/nodes/moved/proxy/metrics"), 400, "address not allowed")
    assert len(server.asked) == reached


def test_nothing_is_sent_to_the_addresses_of_simulated_nodes_and_their_pods(
    api: Live, server: Backend
) -> None:
    create_node(api, "pretended", server.server_port, ADDRESS)
    labels = {"metadata": {"labels": {SIMULATOR_LABEL: "node"}}}
    assert api.patch("/api/v1/nodes/pretended", labels).status_code == 200
    make_pod(api, "pretended", server.server_port, node="pretended")
    addresses = [refers_to("pretended") | {"nodeName": "pretended"}]
    ports = [{"name": "web", "port": server.server_port}]
    subsets = [{"addresses": addresses, "ports": ports}]
    service = make_service(api, "pretended", server.server_port, subsets)
    why = "the simulated node pretended: nothing listens there"
    failure(api.client.get("/api/v1/nodes/pretended/proxy/metrics"), 503, f"this is {why}")
    failure(api.client.get("/api/v1/nodes/pretended:1/proxy/"), 503, f"this is {why}")
    failure(api.client.get(f"{PODS}/pretended/proxy/"), 503, f"pod pretended is on {why}")
    failure(api.client.get(f"{service}:web/proxy/"), 503, "are on simulated nodes")


def test_each_method_needs_its_own_verb(api: Live, proxied: str) -> None:
    rules = [{"apiGroups": [""], "resources": ["pods/proxy"], "verbs": ["get"]}]
    rbac = "/apis/rbac.authorization.k8s.io/v1/namespaces/default"
    group = "rbac.authorization.k8s.io"
    api.create(f"{rbac}/roles", {"metadata": {"name": "proxies"}, "rules": rules})
    api.create(
        f"{rbac}/rolebindings",
        {
            "metadata": {"name": "proxies"},
            "roleRef": {"apiGroup": group, "kind": "Role", "name": "proxies"},
            "subjects": [{"apiGroup": group, "kind": "User", "name": "jane"}],
        },
    )
    with api.as_user("janes-token") as jane:
        until(lambda: jane.get(f"{proxied}/x").status_code == 200, "the role's effect")
        assert jane.head(f"{proxied}/x").status_code == 200
        for method, verb in (("POST", "create"), ("PUT", "update"), ("DELETE", "delete")):
            message = f'cannot {verb} resource "pods/proxy" in API group ""'
            failure(jane.request(method, f"{proxied}/x"), 403, message)
        assert jane.request("OPTIONS", f"{proxied}/x").status_code == 403
