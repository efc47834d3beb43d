"""A node's HTTP API while one user leaves many streams open: other users are still served."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import httpx
import pytest

from kcm.api.core_v1 import Pod
from kcm.clock import RealClock
from kcm.http.listening import listen
from kcm.kubelet.kuberuntime.labels import POD_UID
from kcm.kubelet.server.app import KubeletServer, ServerSources
from kcm.kubelet.server.pods import NodePods
from kcm.kubelet.server.serving import NodeServer
from kcm.kubelet.server.stream_limits import MOST_OF_POD
from kcm.testing.waiting import until
from tests.integration.kubelet.runtimes import PATIENCE, RealRuntime

ASK = (
    "GET /exec/shop/{pod}/main?command=sleep&command=1000&output=1 HTTP/1.1\r\nHost: node\r\n"
    "Authorization: Bearer key\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
    "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
    "Sec-WebSocket-Protocol: v5.channel.k8s.io\r\n\r\n"
)


@pytest.fixture
def port(tmp_path: Path) -> Iterator[int]:
    """Yields the port of a node's HTTP API. The node has two pods."""
    real = RealRuntime(tmp_path)
    pods = [
        Pod.model_validate(
            {
                "metadata": {"name": name, "namespace": "shop", "uid": name},
                "spec": {"containers": [{"name": "main"}]},
            }
        )
        for name in ("one", "other")
    ]
    for pod in pods:
        real.start("sleep", "1000", labels={POD_UID: pod.uid or ""})
    sources = ServerSources(NodePods(lambda: pods, lambda _: None, real.runtime), lambda: "")
    app = KubeletServer(sources, lambda: "key", RealClock())
    listener = listen("127.0.0.1", 0, "--port")
    port = int(listener.getsockname()[1])
    server = NodeServer(app, listener)
    server.start()
    yield port
    until(lambda: not app.under_way, "the end of all streams")  # their clients have left
    server.stop()
    real.close()


def exec_in(pod: str, port: int, held: ExitStack) -> int:
    """Opens an exec and leaves it open; returns the status code of the response."""
    connection = held.enter_context(socket.create_connection(("127.0.0.1", port), PATIENCE))
    connection.sendall(ASK.format(pod=pod).encode())
    return int(connection.recv(4096).split(b" ")[1])


def test_execs_that_are_left_hold_up_neither_other_pods_nor_the_nodes_pages(port: int) -> None:
    with ExitStack() as held:
        codes = [exec_in("one", port, held) for _ in range(MOST_OF_POD + 2)]
        assert codes == [101] * MOST_OF_POD + [429] * 2
        assert exec_in("other", port, held) == 101
        own = {"Authorization": "Bearer key"}
        for page in ("healthz", "pods", "metrics"):
            response = httpx.get(f"http://127.0.0.1:{port}/{page}", headers=own, timeout=PATIENCE)
            assert response.status_code == 200
