"""An operator on Node.js is upgraded to another version of its kind, and loses nothing."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.operators import OperatorProcess, node_operator
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


def is_reported(cluster: Cluster, path: str, ready: int, by: str) -> bool:
    """Reports whether the release `by` has reported so many workers; not while none converts."""
    response = cluster.client.get(path)
    status = response.json().get("status", {}) if response.status_code == 200 else {}
    return (status.get("ready"), status.get("by")) == (ready, by)


def test_an_operator_on_node_is_upgraded_with_a_conversion(tmp_path: Path) -> None:
    with running_in_process() as cluster:
        queues = UpgradedKind(cluster, "Queue", SPECS, tmp_path)
        queues.define()

        def wait(operator: OperatorProcess, by: str, version: str, **workers: int) -> None:
            """Waits until a release reports so many ready workers of these Queues."""
            for name, ready in workers.items():
                path = queues.path_of(version, name)
                operator.until(partial(is_reported, cluster, path, ready, by), name)

        with node_operator(cluster.kubeconfig, tmp_path, "first") as first:
            for name, workers in (("mail", 2), ("bills", 1)):
                made = cluster.create(queues.path_of(OLD), queues.build(OLD, name, workers=workers))
                assert made.status_code == 201, made.text
            wait(first, "first", OLD, mail=2, bills=1)
        kept = {name: cluster.get(f"{DEPLOYMENTS}/{name}") for name in ("mail", "bills")}
        # Nobody is there: what changes meanwhile is seen by the next release.
        cluster.patch(queues.path_of(OLD, "bills"), {"spec": {"workers": 3}})
        queues.convert()
        settings = {"CONVERSION_PORT": str(queues.port), "CERTIFICATES": str(tmp_path)}
        with node_operator(cluster.kubeconfig, tmp_path, "second", **settings) as second:
            wait(second, "second", NEW, mail=2, bills=3)
            # A client of before: its Queue is converted for the operator, and back for the client.
            made = cluster.create(queues.path_of(OLD), queues.build(OLD, "late", workers=2))
            assert made.json()["spec"] == {"workers": 2}, made.text
            wait(second, "second", OLD, late=2)
            assert cluster.get(queues.path_of(NEW, "late"))["spec"] == {"pool": {"size": 2}}
            queues.migrate()
            cluster.patch(queues.path_of(NEW, "mail"), {"spec": {"pool": {"size": 4}}})
            wait(second, "second", NEW, mail=4)
        # Nobody converts any more, and nobody needs to.
        sizes = {
            item["metadata"]["name"]: item["spec"]["pool"]["size"]
            for item in cluster.get(queues.path_of(NEW))["items"]
        }
        assert sizes == {"mail": 4, "bills": 3, "late": 2}
        uids = {name: cluster.get(f"{DEPLOYMENTS}/{name}")["metadata"]["uid"] for name in kept}
        assert uids == {name: obj["metadata"]["uid"] for name, obj in kept.items()}
