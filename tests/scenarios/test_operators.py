"""Operators on kopf and on Node.js: killed, started again, and their children collected."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from kcm.testing.waiting import until
from tests.integration.apiserver.authority import Authority
from tests.operators import PROGRAMS, OperatorProcess, node_operator
from tests.scenarios.cluster import APPS, Cluster, running
from tests.scenarios.system import System

pytestmark = pytest.mark.scenario

CORE = "/api/v1/namespaces/default"
DEPLOYMENTS = f"{APPS}/namespaces/default/deployments"
CUSTOMS = "/apis/example.com/v1/namespaces/default"
CONFIGURATIONS = "/apis/admissionregistration.k8s.io/v1/{}webhookconfigurations"
OPEN = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    """Yields a kcm with three simulated nodes."""
    with running() as cluster:
        yield cluster


def define(cluster: Cluster, kind: str) -> str:
    """Creates the definition of a kind; returns the path of its objects."""
    plural = f"{kind.lower()}s"
    schema = {"type": "object", "properties": {"spec": OPEN, "status": OPEN}}
    version = {"name": "v1", "served": True, "storage": True, "subresources": {"status": {}}}
    body = {
        "metadata": {"name": f"{plural}.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"kind": kind, "plural": plural},
            "versions": [version | {"schema": {"openAPIV3Schema": schema}}],
        },
    }
    made = cluster.create("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", body)
    assert made.status_code == 201, made.text
    path = f"{CUSTOMS}/{plural}"
    until(lambda: cluster.has(path), "the new kind")
    return path


def custom(kind: str, name: str, **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "example.com/v1",
        "kind": kind,
        "metadata": {"name": name},
        "spec": spec,
    }


def status(cluster: Cluster, path: str, field: str) -> Any:
    return cluster.get(path).get("status", {}).get(field)


# --- kopf


def add_plan(cluster: Cluster, name: str, seats: int) -> None:
    labels = {"example.com/plan": ""}
    body = {"metadata": {"name": name, "labels": labels}, "data": {"seats": str(seats)}}
    assert cluster.create(f"{CORE}/configmaps", body).status_code == 201


def has_webhooks(cluster: Cluster) -> bool:
    paths = [CONFIGURATIONS.format(kind) for kind in ("mutating", "validating")]
    return all(any(item.get("webhooks") for item in cluster.get(path)["items"]) for path in paths)


@contextmanager
def kopf_operator(cluster: Cluster, folder: Path) -> Iterator[OperatorProcess]:
    Authority(folder, "webhooks").server("127.0.0.1")
    script = str(PROGRAMS / "workspaces.py")
    command = [sys.executable, "-m", "kopf", "run", script, "--all-namespaces", "--verbose"]
    operator = OperatorProcess(
        command, cluster.kubeconfig, folder / "kopf.log", CERTIFICATES=str(folder)
    )
    try:
        yield operator
    finally:
        operator.kill()
        for kind in ("mutating", "validating"):  # nobody answers any more
            cluster.client.delete(f"{CONFIGURATIONS.format(kind)}/workspaces.example.com")


def test_a_kopf_operator_with_an_index_children_and_webhooks(
    cluster: Cluster, tmp_path: Path
) -> None:
    path = define(cluster, "Workspace")
    add_plan(cluster, "small", 1)
    add_plan(cluster, "large", 3)
    with kopf_operator(cluster, tmp_path) as operator:
        operator.until(lambda: has_webhooks(cluster), "kopf's configurations")
        made = cluster.create(path, custom("Workspace", "ada"))
        assert made.json()["spec"] == {"plan": "small"}
        assert made.json()["metadata"]["annotations"]["example.com/created-by"]
        bob, eve = (custom("Workspace", name, plan="huge") for name in ("bob", "eve"))
        refused = cluster.create(path, bob)
        assert refused.status_code == 422
        assert "there is no plan huge" in refused.json()["message"]
        add_plan(cluster, "huge", 4)
        operator.until(
            lambda: cluster.create(path, bob).status_code == 201,
            "the new plan in the index",
        )
        operator.until(lambda: status(cluster, f"{path}/bob", "ready") == 4, "four replicas")
        moved = cluster.patch(f"{path}/ada", {"spec": {"plan": "large"}})
        assert "warning" not in moved.headers
        operator.until(lambda: status(cluster, f"{path}/ada", "ready") == 3, "the new plan")
        moved = cluster.patch(f"{path}/bob", {"spec": {"plan": "large"}})
        assert moved.headers["warning"] == '299 - "large has fewer seats than huge"'

        operator.kill()
        down = cluster.create(path, eve)
        assert down.status_code == 500
        assert cluster.client.delete(f"{path}/bob").is_success
        assert cluster.client.delete(f"{DEPLOYMENTS}/ada").is_success
        assert cluster.client.delete(f"{CORE}/configmaps/huge").is_success
        beats = status(cluster, f"{path}/ada", "beats")
        assert cluster.has(f"{path}/bob")  # a handler has to see it first
        operator.start()
        operator.until(lambda: not cluster.has(f"{path}/bob"), "the end of the deleted one")
        operator.until(lambda: not cluster.has(f"{DEPLOYMENTS}/bob"), "the end of its child")
        assert cluster.has(f"{CORE}/configmaps/bob-closed")
        operator.until(lambda: cluster.has(f"{DEPLOYMENTS}/ada"), "the child that was missing")
        operator.until(lambda: status(cluster, f"{path}/ada", "ready") == 3, "its replicas")
        operator.until(lambda: status(cluster, f"{path}/ada", "beats") != beats, "the daemon")
        operator.until(
            lambda: "no plan huge" in cluster.create(path, eve).text,
            "the plan's end in the index",
        )


# --- Node.js


def test_an_operator_on_node_sees_everything_whatever_dies(
    cluster: Cluster, tmp_path: Path
) -> None:
    path = define(cluster, "Queue")
    cluster.create(path, custom("Queue", "before", workers=1))
    with (
        node_operator(cluster.kubeconfig, tmp_path, "first") as first,
        node_operator(cluster.kubeconfig, tmp_path, "second") as second,
    ):

        def is_ready(name: str, workers: int) -> bool:
            return bool(status(cluster, f"{path}/{name}", "ready") == workers)

        def say() -> str:
            return first.words + second.words

        until(lambda: is_ready("before", 1), "the Queue of before", words=say)
        leader = status(cluster, f"{path}/before", "by")
        leads, follows = (first, second) if leader == "first" else (second, first)

        # The API server dies: watches break, and the Queue that comes meanwhile is seen.
        assert isinstance(cluster.system, System)
        cluster.system.kill("apiserver")
        until(cluster.answers, "the API server", words=say)
        cluster.create(path, custom("Queue", "between", workers=2))
        cluster.patch(f"{path}/before", {"spec": {"workers": 2}})
        until(lambda: is_ready("between", 2) and is_ready("before", 2), "both", words=say)

        # The leader dies: the other takes the Lease, and goes on.
        leads.kill()
        assert cluster.client.delete(f"{path}/between").is_success
        cluster.create(path, custom("Queue", "after", workers=3))
        until(lambda: is_ready("after", 3), "the next leader's work", words=say)
        until(lambda: not cluster.has(f"{path}/between"), "the finalizer's end", words=say)
        until(lambda: not cluster.has(f"{DEPLOYMENTS}/between"), "the child's end", words=say)
        assert status(cluster, f"{path}/after", "by") != leader

        # Both are dead: what happens meanwhile is seen by who starts again.
        follows.kill()
        assert cluster.client.delete(f"{DEPLOYMENTS}/after").is_success
        cluster.patch(f"{path}/before", {"spec": {"workers": 1}})
        leads.start()
        until(lambda: status(cluster, f"{path}/before", "by") == leader, "a new term", words=say)
        until(lambda: is_ready("before", 1) and is_ready("after", 3), "the changes", words=say)
