"""Port-forwarding in channels of a WebSocket, as the official Python client does it."""

from __future__ import annotations

import gc
import shutil
import socket
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from kubernetes import client
from kubernetes.client.exceptions import ApiException
from kubernetes.stream import portforward

from kcm import errors
from kcm.kubelet.assembly.process import KubeletProcess
from kcm.kubelet.options import KubeletOptions
from kcm.kubelet.server.portforward import parse_ports
from kcm.redisio.embedded import EmbeddedServer
from kcm.testing.waiting import until
from tests.integration.apiserver.serving import TOKEN, Live, live
from tests.integration.kubelet.node import NO_EVICTIONS

# The client leaves its sockets to the garbage collector.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")

NODE = "node-1"
PODS = "/api/v1/namespaces/default/pods"
REVERSES = (
    "exec python3 -u -c 'import os, socket; "
    's = socket.create_server((os.environ["POD_IP"], 8080)); '
    "[(lambda c: (c.sendall(c.recv(9)[::-1]), c.close()))(s.accept()[0]) for _ in range(99)]'"
)


@pytest.fixture(scope="module")
def pods(redis_server: EmbeddedServer) -> Iterator[client.CoreV1Api]:
    """The API of a server with one real node, on which the pod `web` serves port 8080."""
    folder = Path(tempfile.mkdtemp(prefix="kcm-ports-"))
    with live(redis_server.url, folder) as api:
        options = KubeletOptions(
            node_name=NODE,
            root_dir=folder / "kubelet",
            port=0,
            eviction=NO_EVICTIONS,
        )
        kubelet = KubeletProcess(api.settings, options)
        kubelet.start()
        try:
            until(lambda: api.client.get(f"/api/v1/nodes/{NODE}").status_code == 200, "the node")
            start(api)
            with client.ApiClient(configuration(api)) as connection:
                yield client.CoreV1Api(connection)
                # Closing the client leaves them to the garbage collector, which warns.
                connection.rest_client.pool_manager.clear()
        finally:
            kubelet.stop()
            for sandbox in kubelet.kubelet.runtime.list_pod_sandboxes():
                kubelet.kubelet.runtime.remove_pod_sandbox(sandbox.id)
    gc.collect()
    shutil.rmtree(folder, ignore_errors=True)


def start(api: Live) -> None:
    container = {
        "name": "main",
        "image": "none",
        "command": ["sh", "-c", REVERSES],
        "env": [{"name": "POD_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}],
        "readinessProbe": {"tcpSocket": {"port": 8080}, "periodSeconds": 1},
    }
    spec = {"nodeName": NODE, "containers": [container], "terminationGracePeriodSeconds": 1}
    api.create(PODS, {"metadata": {"name": "web"}, "spec": spec})

    def ready() -> bool:
        statuses = api.get(f"{PODS}/web")["status"].get("containerStatuses") or [{}]
        return bool(statuses[0].get("ready"))

    until(ready, "the pod")


def configuration(api: Live) -> client.Configuration:
    settings = client.Configuration(host=api.url)
    settings.ssl_ca_cert = str(api.kubeconfig.with_name("apiserver.crt"))
    settings.api_key = {"authorization": f"Bearer {TOKEN}"}
    return settings


def exchange(connection: socket.socket) -> bytes:
    connection.settimeout(60)
    connection.sendall(b"123")
    return connection.recv(9)


def test_ports_are_forwarded_side_by_side_and_again(pods: client.CoreV1Api) -> None:
    connect = pods.connect_get_namespaced_pod_portforward
    for _ in range(2):
        forwarded = portforward(connect, "web", "default", ports="8080")
        assert exchange(forwarded.socket(8080)) == b"321"
        assert forwarded.error(8080) is None
        forwarded.close()


def test_a_port_that_nobody_listens_on_is_told_and_leaves_others_alone(
    pods: client.CoreV1Api,
) -> None:
    connect = pods.connect_get_namespaced_pod_portforward
    forwarded = portforward(connect, "web", "default", ports="9,8080")
    assert exchange(forwarded.socket(8080)) == b"321"
    until(lambda: forwarded.error(9) is not None, "the error")
    assert "error forwarding port 9" in forwarded.error(9)
    forwarded.close()


@pytest.mark.parametrize("ports", ["0", "65536", "x", "", "1,", ",".join(["80"] * 101)])
def test_what_is_no_port_is_a_bad_request(ports: str) -> None:
    with pytest.raises(errors.BadRequest):
        parse_ports([ports])
    with pytest.raises(errors.BadRequest):
        parse_ports([])


def test_a_pod_that_is_not_there_is_not_found(pods: client.CoreV1Api) -> None:
    connect = pods.connect_get_namespaced_pod_portforward
    with pytest.raises(ApiException, match="404"):
        portforward(connect, "none", "default", ports="8080")
