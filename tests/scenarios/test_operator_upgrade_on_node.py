"""An operator on Node.js is upgraded to another version of its kind, and loses nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.integration.apiserver.authority import Authority
from tests.operators import node_operator
from tests.ports import free_port
from tests.scenarios.cluster import APPS, Cluster
from tests.scenarios.plane import running_in_process
from tests.scenarios.upgraded_kind import UpgradedKind

pytestmark = pytest.mark.scenario

DEPLOYMENTS = f"{APPS}/namespaces/default/deployments"
OLD, NEW = "v1", "v2"
WORKERS = {"type": "integer", "minimum": 1}
SPECS: dict[str, dict[str, Any]] = {
    OLD: {"workers": WORKERS},
    NEW: {"pool": {"type": "object", "properties": {"size": WORKERS}}},
}


def get_ready(cluster: Cluster, path: str) -> tuple[int, str]:
    """Returns the number of ready workers, and which release says so; 0 while nobody converts."""
    response = cluster.client.get(path)
    status = response.json().get("status", {}) if response.status_code == 200 else {}
    return status.get("ready", 0), status.get("by", "")


def test_an_operator_on_node_is_upgraded_with_a_conversion(tmp_path: Path) -> None:
    authority = Authority(tmp_path, "webhooks")
    authority.server("127.0.0.1")
    port = free_port()
    with running_in_process() as cluster:
        queues = UpgradedKind(cluster, "Queue", SPECS)
        queues.define()
        with node_operator(cluster.kubeconfig, tmp_path, "first") as first:
            for name, workers in (("mail", 2), ("bills", 1)):
                made = cluster.create(queues.path_of(OLD), queues.build(OLD, name, workers=workers))
                assert made.status_code == 201, made.text
            first.until(
                lambda: get_ready(cluster, queues.path_of(OLD, "mail")) == (2, "first"),
                "the workers",
            )
            first.until(
                lambda: get_ready(cluster, queues.path_of(OLD, "bills")) == (1, "first"),
                "the others",
            )
        kept = {name: cluster.get(f"{DEPLOYMENTS}/{name}") for name in ("mail", "bills")}
        # Nobody is there: what changes meanwhile is seen by the next release.
        cluster.patch(queues.path_of(OLD, "bills"), {"spec": {"workers": 3}})
        queues.convert_at(port, authority.path.read_bytes())
        settings = {"CONVERSION_PORT": str(port), "CERTIFICATES": str(tmp_path)}
        with node_operator(cluster.kubeconfig, tmp_path, "second", **settings) as second:
            second.until(
                lambda: get_ready(cluster, queues.path_of(NEW, "mail")) == (2, "second"),
                "the first one",
            )
            second.until(
                lambda: get_ready(cluster, queues.path_of(NEW, "bills")) == (3, "second"),
                "the change",
            )
            # A client of before: its Queue is converted for the operator, and back for the client.
            made = cluster.create(queues.path_of(OLD), queues.build(OLD, "late", workers=2))
            assert made.json()["spec"] == {"workers": 2}, made.text
            second.until(
                lambda: get_ready(cluster, queues.path_of(OLD, "late")) == (2, "second"),
                "the third one",
            )
            assert cluster.get(queues.path_of(NEW, "late"))["spec"] == {"pool": {"size": 2}}
            queues.migrate()
            cluster.patch(queues.path_of(NEW, "mail"), {"spec": {"pool": {"size": 4}}})
            second.until(
                lambda: get_ready(cluster, queues.path_of(NEW, "mail")) == (4, "second"),
                "the change",
            )
        # Nobody converts any more, and nobody needs to.
        sizes = {
            item["metadata"]["name"]: item["spec"]["pool"]["size"]
            for item in cluster.get(queues.path_of(NEW))["items"]
        }
        assert sizes == {"mail": 4, "bills": 3, "late": 2}
        uids = {name: cluster.get(f"{DEPLOYMENTS}/{name}")["metadata"]["uid"] for name in kept}
        assert uids == {name: obj["metadata"]["uid"] for name, obj in kept.items()}
