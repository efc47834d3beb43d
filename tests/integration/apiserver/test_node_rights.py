"""A kubelet's certificate opens its own node, its pods, and what they need. Nothing else."""

from __future__ import annotations

import shutil
import ssl
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from kcm.redisio.embedded import EmbeddedServer
from kcm.testing.waiting import until
from tests.integration.apiserver.authority import Authority
from tests.integration.apiserver.serving import Live, live

DEFAULT = "/api/v1/namespaces/default"
CONTAINER = {"name": "c", "image": "i"}


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    path = Path(tempfile.mkdtemp(prefix="kcm-nodes-"))
    yield path
    shutil.rmtree(path, ignore_errors=True)


@pytest.fixture(scope="module")
def authority(folder: Path) -> Authority:
    return Authority(folder)


@pytest.fixture(scope="module")
def api(redis_server: EmbeddedServer, folder: Path, authority: Authority) -> Iterator[Live]:
    with live(redis_server.url, folder, authority.path) as running:
        for node in ("n1", "n2"):
            running.create("/api/v1/nodes", {"metadata": {"name": node}})
            running.create(f"{DEFAULT}/secrets", {"metadata": {"name": f"secret-{node}"}})
            volume = {"name": "s", "secret": {"secretName": f"secret-{node}"}}
            spec = {"nodeName": node, "containers": [CONTAINER], "volumes": [volume]}
            running.create(f"{DEFAULT}/pods", {"metadata": {"name": f"pod-{node}"}, "spec": spec})
        yield running


@pytest.fixture
def n1(api: Live, authority: Authority) -> Iterator[httpx.Client]:
    """Yields a client with the certificate of the node n1."""
    context = ssl.create_default_context(cafile=str(api.kubeconfig.with_name("apiserver.crt")))
    context.load_cert_chain(*authority.client("system:node:n1", "system:nodes"))
    with httpx.Client(base_url=api.url, verify=context) as client:
        until(lambda: client.get(f"{DEFAULT}/secrets/secret-n1").status_code == 200, "its secret")
        yield client


def refusal(response: httpx.Response) -> str:
    assert response.status_code == 403
    return str(response.json()["message"])


def test_a_node_reads_what_its_pods_need(n1: httpx.Client) -> None:
    assert n1.get(f"{DEFAULT}/pods/pod-n1").status_code == 200
    pods = n1.get("/api/v1/pods", params={"fieldSelector": "spec.nodeName=n1"}).json()["items"]
    assert [pod["metadata"]["name"] for pod in pods] == ["pod-n1"]
    assert n1.get("/api/v1/nodes/n1").status_code == 200


def test_a_node_reads_nothing_of_another_node(n1: httpx.Client) -> None:
    assert refusal(n1.get(f"{DEFAULT}/secrets/secret-n2")) == (
        'secrets "secret-n2" is forbidden: User "system:node:n1" cannot get resource "secrets" in '
        'API group "" in the namespace "default": no relationship found between node \'n1\' and '
        "this object"
    )
    assert "only its own Node object" in refusal(n1.get("/api/v1/nodes/n2"))
    assert "can only list/watch pods with spec.nodeName" in refusal(n1.get("/api/v1/pods"))
    assert "cannot list resource" in refusal(n1.get(f"{DEFAULT}/secrets"))


def test_a_node_writes_its_own_objects_only(n1: httpx.Client) -> None:
    def patch(path: str, body: Any) -> httpx.Response:
        return n1.patch(path, json=body, headers={"content-type": "application/merge-patch+json"})

    ready = {"status": {"phase": "Running"}}
    assert patch(f"{DEFAULT}/pods/pod-n1/status", ready).status_code == 200
    assert refusal(patch(f"{DEFAULT}/pods/pod-n2/status", ready)) == (
        'pods "pod-n2" is forbidden: node "n1" can only update pod status for pods with '
        "spec.nodeName set to itself"
    )
    labels = {"metadata": {"labels": {"mine": "yes"}}}
    assert "cannot update labels through pod status" in refusal(
        patch(f"{DEFAULT}/pods/pod-n1/status", labels)
    )
    taken = {"metadata": {"ownerReferences": [{"apiVersion": "v1", "kind": "Node", "name": "n9",
                                               "uid": "u"}]}}  # fmt: skip
    assert "is not allowed to modify ownerReferences" in refusal(
        patch("/api/v1/nodes/n1/status", taken)
    )
    assert patch("/api/v1/nodes/n1", labels).status_code == 200
    assert refusal(patch("/api/v1/nodes/n2", labels)) == (
        'nodes "n2" is forbidden: node "n1" is not allowed to modify node "n2"'
    )
    taints = {"spec": {"taints": [{"key": "a", "effect": "NoSchedule"}]}}
    assert "is not allowed to modify taints" in refusal(patch("/api/v1/nodes/n1", taints))
    restricted = {"metadata": {"labels": {"node-restriction.kubernetes.io/a": "b"}}}
    assert "is not allowed to modify labels" in refusal(patch("/api/v1/nodes/n1", restricted))


def test_a_node_that_may_delete_collections_is_told_of_the_pod_that_is_not_its_own(
    n1: httpx.Client, api: Live
) -> None:
    rules = [{"apiGroups": [""], "resources": ["pods"], "verbs": ["deletecollection", "list"]}]
    rbac = "/apis/rbac.authorization.k8s.io/v1"
    api.create(f"{rbac}/clusterroles", {"metadata": {"name": "clears"}, "rules": rules})
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "clears"}
    subject = {
        "apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "system:node:n1",
    }  # fmt: skip
    binding = {"metadata": {"name": "clears"}, "roleRef": role, "subjects": [subject]}
    api.create(f"{rbac}/clusterrolebindings", binding)

    def clear() -> httpx.Response:
        return n1.delete(f"{DEFAULT}/pods", params={"fieldSelector": "spec.nodeName=n2"})

    until(lambda: "cannot deletecollection" not in clear().text, "the role")
    assert "can only delete pods with spec.nodeName set to itself" in refusal(clear())
    assert api.client.get(f"{DEFAULT}/pods/pod-n2").status_code == 200


def test_a_node_cannot_remove_an_unreadable_pod_of_another_node(
    n1: httpx.Client, api: Live
) -> None:
    spec = {"nodeName": "n2", "containers": [CONTAINER]}
    api.create(f"{DEFAULT}/pods", {"metadata": {"name": "unreadable"}, "spec": spec})
    io = api.store.io
    key = io.keys.object("pods", "default/unreadable")
    io.execute("HSET", key, "json", "{")
    fault = refusal(n1.delete(f"{DEFAULT}/pods/unreadable"))
    assert "can only delete pods with spec.nodeName set to itself" in fault
    assert io.execute("EXISTS", key) == 1
    assert api.client.delete(f"{DEFAULT}/pods/unreadable").status_code == 200


def test_a_node_creates_mirror_pods_and_its_lease_only(n1: httpx.Client, api: Live) -> None:
    pod: dict[str, Any] = {
        "metadata": {"name": "static"},
        "spec": {"nodeName": "n1", "containers": [CONTAINER]},
    }
    assert "can only create mirror pods" in refusal(n1.post(f"{DEFAULT}/pods", json=pod))
    uid = api.get("/api/v1/nodes/n1")["metadata"]["uid"]
    owner = {"apiVersion": "v1", "kind": "Node", "name": "n1", "uid": uid, "controller": True}
    pod["metadata"] |= {
        "annotations": {"kubernetes.io/config.mirror": "x"},
        "ownerReferences": [owner],
    }
    assert n1.post(f"{DEFAULT}/pods", json=pod).status_code == 201
    leases = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
    assert n1.post(leases, json={"metadata": {"name": "n1"}}).status_code == 201
    assert "same name as the requesting node" in refusal(
        n1.post(leases, json={"metadata": {"name": "n2"}})
    )


def test_a_node_deletes_and_evicts_its_own_pods_only(n1: httpx.Client) -> None:
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "pod-n2"}}
    assert "node n1 can only evict pods" in refusal(
        n1.post(f"{DEFAULT}/pods/pod-n2/eviction", json=eviction)
    )
    assert 'node "n1" can only delete pods' in refusal(n1.delete(f"{DEFAULT}/pods/pod-n2"))
    assert n1.delete(f"{DEFAULT}/pods/pod-n1").status_code == 200
