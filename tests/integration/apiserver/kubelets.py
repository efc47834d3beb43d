"""Nodes whose kubelets are servers of a test."""

from __future__ import annotations

from kcm.helpers import node_token
from tests.integration.apiserver.serving import Live


def create_node(
    api: Live, name: str, port: int, address: str = "127.0.0.1", *, proven: bool = True
) -> None:
    """Creates a node whose kubelet listens at a loopback address, without TLS.

    Its address is `proven` to be its own, as that of a kubelet that may read the cluster's key.
    """
    annotations = {node_token.TLS_ANNOTATION: "false"}
    if proven:
        key = node_token.ensure_key(api.store)
        proof = node_token.prove_address(key, name, address, port)
        annotations[node_token.PROOF_ANNOTATION] = proof
    api.create("/api/v1/nodes", {"metadata": {"name": name, "annotations": annotations}})
    point(api, name, address, port)


def point(api: Live, name: str, address: str, port: int) -> None:
    """Changes the address and the port that a node's status gives for its kubelet."""
    node = api.get(f"/api/v1/nodes/{name}")
    node["status"] = {
        "addresses": [{"type": "InternalIP", "address": address}],
        "daemonEndpoints": {"kubeletEndpoint": {"Port": port}},
    }
    assert api.request("PUT", f"/api/v1/nodes/{name}/status", node).status_code == 200
