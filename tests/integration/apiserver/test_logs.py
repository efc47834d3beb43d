"""Logs of containers, from a small HTTP server in place of a kubelet."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from kcm.api.simulated import SIMULATOR_LABEL
from tests.integration.apiserver.kubectl import Kubectl
from tests.integration.apiserver.kubelets import create_node
from tests.integration.apiserver.manifests import pod
from tests.integration.apiserver.serving import Live

PODS = "/api/v1/namespaces/default/pods"


class Kubelet(ThreadingHTTPServer):
    """Sends lines. A followed log continues when the test allows it."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.asked: list[str] = []
        self.go_on = threading.Event()
        self.left = threading.Event()


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Kubelet

    def do_GET(self) -> None:
        self.server.asked.append(self.path)
        parts = urlsplit(self.path)
        if parts.path.endswith("/broken"):
            self._plain(400, b'container "broken" in pod "p" is waiting to start\n')
        elif "follow" in parse_qs(parts.query):
            self._follow()
        else:
            self._plain(200, b"one\ntwo\n")

    def _plain(self, code: int, body: bytes) -> None:
        self.send_response(code)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _follow(self) -> None:
        self.send_response(200)
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        try:
            self._chunk(b"first\n")
            self.server.go_on.wait(20)
            for _ in range(200_000):
                self._chunk(b"later\n" * 1000)
            self._chunk(b"")
        except OSError:
            self.server.left.set()

    def _chunk(self, data: bytes) -> None:
        self.wfile.write(b"%x\r\n%b\r\n" % (len(data), data))

    def log_message(self, format: str, *args: Any) -> None:
        """Logs nothing."""


@pytest.fixture(scope="module")
def kubelet(api: Live) -> Iterator[Kubelet]:
    server = Kubelet()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    create_node(api, "log-node", server.server_port)
    yield server
    server.go_on.set()
    server.shutdown()
    thread.join(5)
    server.server_close()


def on_node(
    api: Live, name: str, *containers: str, node: str = "log-node", where: str = PODS
) -> str:
    body = pod(name)
    body["spec"]["containers"] = [{"name": c, "image": "x"} for c in containers or ("c",)]
    if node:
        body["spec"]["nodeName"] = node
    api.create(where, body)
    return f"{where}/{name}/log"


def test_a_log_comes_from_the_nodes_kubelet_with_its_options(api: Live, kubelet: Kubelet) -> None:
    path = on_node(api, "l-plain")
    response = api.client.get(
        path,
        params={
            "tailLines": "5", "sinceSeconds": "60", "limitBytes": "100",
            "previous": "true", "timestamps": "1", "follow": "false",
        },
    )  # fmt: skip
    assert (response.status_code, response.text) == (200, "one\ntwo\n")
    assert response.headers["content-type"].startswith("text/plain")
    asked = urlsplit(kubelet.asked[-1])
    assert asked.path == "/containerLogs/default/l-plain/c"
    assert parse_qs(asked.query) == {
        "tailLines": ["5"], "sinceSeconds": ["60"], "limitBytes": ["100"],
        "previous": ["true"], "timestamps": ["true"],
    }  # fmt: skip


def test_the_container_must_be_named_where_there_are_several(api: Live, kubelet: Kubelet) -> None:
    path = on_node(api, "l-two", "a", "b")
    refused = api.client.get(path)
    assert refused.status_code == 400
    assert refused.json()["message"] == (
        "a container name must be specified for pod l-two, choose one of: [a b]"
    )
    assert api.client.get(path, params={"container": "b"}).text == "one\ntwo\n"
    assert kubelet.asked[-1] == "/containerLogs/default/l-two/b"
    wrong = api.client.get(path, params={"container": "z"})
    assert wrong.json()["message"] == "container z is not valid for pod l-two"


def test_a_pod_without_a_node_has_an_empty_log(api: Live, kubelet: Kubelet) -> None:
    response = api.client.get(on_node(api, "l-free", node=""))
    assert (response.status_code, response.text) == (200, "")


@pytest.mark.parametrize("options", [{}, {"follow": "true"}, {"tailLines": "5"}])
def test_a_pod_of_a_simulated_node_has_an_empty_log(
    api: Live, kubelet: Kubelet, options: dict[str, str]
) -> None:
    """`helm test --logs` and `kubectl run -i` request one, and there is no kubelet."""
    name = f"timers-{len(options)}{''.join(options).lower()}"
    labels = {SIMULATOR_LABEL: name}
    node = api.create("/api/v1/nodes", {"metadata": {"name": name, "labels": labels}})
    node["status"] = {"addresses": [{"type": "InternalIP", "address": "172.16.0.1"}]}
    assert api.request("PUT", f"/api/v1/nodes/{name}/status", node).status_code == 200
    path = on_node(api, f"l-{name}", "a", "b", node=name)
    response = api.client.get(path, params={"container": "a", **options})
    assert (response.status_code, response.text) == (200, "")
    assert api.client.get(path, params={"container": "z"}).status_code == 400


def test_what_the_kubelet_refuses_is_told(api: Live, kubelet: Kubelet) -> None:
    path = on_node(api, "l-refused", "broken")
    refused = api.client.get(path)
    assert (refused.status_code, refused.json()["reason"]) == (400, "BadRequest")
    assert "waiting to start" in refused.json()["message"]


def test_a_kubelet_that_is_away_is_told(api: Live, kubelet: Kubelet) -> None:
    api.create("/api/v1/nodes", {"metadata": {"name": "log-homeless"}})
    gone = on_node(api, "l-nonode", node="log-none")
    assert api.client.get(gone).json()["message"] == 'nodes "log-none" not found'
    path = on_node(api, "l-homeless", node="log-homeless")
    assert "no preferred addresses found" in api.client.get(path).json()["message"]
    create_node(api, "log-away", 1)
    refused = api.client.get(on_node(api, "l-away", node="log-away"))
    assert refused.status_code == 500
    assert 'Get "http://127.0.0.1:1/containerLogs/default/l-away/c"' in refused.json()["message"]


@pytest.mark.parametrize(
    ("params", "code"),
    [
        ({"tailLines": "-1"}, 422),
        ({"limitBytes": "0"}, 422),
        ({"sinceSeconds": "1", "sinceTime": "2024-01-01T00:00:00Z"}, 422),
        ({"tailLines": "x"}, 400),
        ({"sinceTime": "yesterday"}, 400),
    ],
)
def test_options_that_make_no_sense_are_refused(
    api: Live, params: dict[str, str], code: int
) -> None:
    assert api.client.get(f"{PODS}/l-none/log", params=params).status_code == code


def test_a_followed_log_streams_and_ends_with_its_client(api: Live, kubelet: Kubelet) -> None:
    path = on_node(api, "l-follow")
    with api.client.stream("GET", path, params={"follow": "true"}) as response:
        lines = response.iter_lines()
        assert next(lines) == "first"  # before the kubelet has said all
        assert api.client.get("/readyz").status_code == 200
        kubelet.go_on.set()
        assert next(lines) == "later"
    assert kubelet.left.wait(10)


def test_kubectl_logs(api: Live, kubelet: Kubelet, kubectl: Kubectl) -> None:
    where = f"/api/v1/namespaces/{kubectl.namespace}/pods"
    on_node(api, "web", where=where)
    assert kubectl("logs", "web", "--tail=2") == "one\ntwo\n"
    on_node(api, "two", "a", "b", where=where)
    assert kubectl("logs", "two", "-c", "b") == "one\ntwo\n"
    assert "container z is not valid for pod two" in kubectl.run_failing("logs", "two", "-c", "z")
