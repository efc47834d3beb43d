"""Who may use a node's HTTP API by a client certificate, and which certificate the API shows."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import httpx
import pytest

from kcm.clock import RealClock
from kcm.kubelet.certificates.serving import serving_files
from kcm.kubelet.options import KubeletOptions
from kcm.kubelet.server.app import KubeletServer, ServerSources
from kcm.kubelet.server.pods import NodePods
from kcm.kubelet.server.serving import NodeServer, listen_for_node
from kcm.testing.waiting import until
from tests.integration.apiserver.authority import Authority

ADDRESS = "127.0.0.1"


@dataclass
class Node:
    """A node's HTTP API over TLS, and the authority of its clients."""

    server: NodeServer
    url: str
    pki: Path
    authority: Authority

    def client(self, *groups: str, days: float = 1) -> httpx.Client:
        """Returns a client with a certificate in these groups, with none for no groups."""
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        if groups:
            context.load_cert_chain(*self.authority.client("api", *groups, days=days))
        return httpx.Client(base_url=self.url, verify=context)

    def shown(self) -> bytes:
        """Returns the certificate that the API shows to a new connection."""
        port = int(self.url.rpartition(":")[2])
        return ssl.get_server_certificate((ADDRESS, port)).encode()


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Node]:
    authority = Authority(tmp_path)
    files = serving_files(tmp_path / "pki", "n1", ADDRESS, datetime.now(UTC))
    options = KubeletOptions(node_name="n1", root_dir=tmp_path, port=0, certificate=files)
    listener = listen_for_node(options)
    sources = ServerSources(
        pods=NodePods(list, lambda uid: None, None),  # type: ignore[arg-type] # no pod is asked for
        check_health=str,
        metrics=lambda: b"some metrics",
    )
    app = KubeletServer(sources, lambda: "", RealClock())
    server = NodeServer(app, listener, files, authority.path)
    server.start()
    url = f"https://{ADDRESS}:{listener.getsockname()[1]}"
    made = Node(server, url, tmp_path / "pki", authority)

    def answers() -> bool:
        with made.client() as client:
            try:
                return client.get("/healthz").status_code == 200
            except httpx.TransportError:
                return False

    until(answers, "the node's API", within=60)
    yield made
    server.stop()


def test_an_api_server_has_access_by_its_certificate(node: Node) -> None:
    with node.client("system:masters") as api_server:
        for _ in range(2):  # on one connection
            assert api_server.get("/metrics").text == "some metrics"


@pytest.mark.parametrize("groups", [(), ("system:nodes",), ("masters", "system:master")])
def test_nobody_else_has_access(node: Node, groups: tuple[str, ...]) -> None:
    with node.client(*groups) as stranger:
        assert stranger.get("/metrics").status_code == 401
        assert stranger.get("/healthz").status_code == 200


def test_a_certificate_of_another_authority_ends_the_connection(node: Node, tmp_path: Path) -> None:
    node.authority = Authority(tmp_path, "others")
    with node.client("system:masters") as stranger, pytest.raises(httpx.TransportError):
        stranger.get("/metrics")


def test_new_connections_get_the_new_certificate(node: Node) -> None:
    before = node.shown()
    made = Path(node.authority.client("system:node:n1", "system:nodes", server=True)[0])
    fresh = node.pki / "fresh.pem"
    key_file = made.with_suffix(".key")
    fresh.write_bytes(made.read_bytes() + key_file.read_bytes())
    with node.client("system:masters") as client:
        assert client.get("/metrics").status_code == 200
        node.server.use_certificate(fresh)
        assert client.get("/metrics").status_code == 200
    assert node.shown() != before
    assert node.shown().split() == made.read_bytes().split()
