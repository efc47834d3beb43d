"""A whole kcm with webhooks: controllers' pods meet them as on a cluster of Kubernetes."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from tests.scenarios.plane import Plane, StartPlane, start_plane
from tests.webhooks.process import WebhookServer, webhook_server

__all__ = ["start_plane"]

pytestmark = pytest.mark.scenario

GROUP = "/apis/admissionregistration.k8s.io/v1"
DEPLOYMENT = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: c, image: i}]}
"""


@pytest.fixture
def server(tmp_path: Path) -> Iterator[WebhookServer]:
    with webhook_server(tmp_path) as running:
        yield running


def configuration(name: str, client: dict[str, Any], **rule: Any) -> dict[str, Any]:
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], **rule}
    webhook = {
        "name": f"{name}.example.com",
        "clientConfig": client,
        "rules": [{"resources": ["pods"], **rule}],
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
    }
    return {"metadata": {"name": name}, "webhooks": [webhook]}


def api_client(plane: Plane) -> httpx.Client:
    state = plane.state_dir
    config = yaml.safe_load((state / "kubeconfig").read_text())
    headers = {"authorization": f"Bearer {config['users'][0]['user']['token']}"}
    url = config["clusters"][0]["cluster"]["server"]
    trust = ssl.create_default_context(cafile=str(state / "apiserver.crt"))
    return httpx.Client(base_url=url, headers=headers, verify=trust)


def test_the_pods_of_controllers_meet_webhooks(
    start_plane: StartPlane, server: WebhookServer
) -> None:
    plane = start_plane(nodes=1)
    with api_client(plane) as client:
        body = configuration("sidecars", server.at("sidecar/proxy"))
        path = f"{GROUP}/mutatingwebhookconfigurations"
        assert client.post(path, json=body).status_code == 201
        plane.apply(DEPLOYMENT)
        plane.until(lambda: ready(plane) == 2, "two pods")
        for pod in plane.items("pods", app="web"):
            assert [one["name"] for one in pod["spec"]["containers"]] == ["c", "proxy"]
        asked = server.take_reviews()
        users = {one["review"]["request"]["userInfo"]["username"] for one in asked}
        assert users == {"system:serviceaccount:kube-system:replicaset-controller"}
        server.release()  # from now on, a call of `never` ends without an answer
        gone = {**body["webhooks"][0], "clientConfig": server.at("never")}
        assert client.patch(
            f"{path}/sidecars",
            json={"webhooks": [gone]},
            headers={"content-type": "application/merge-patch+json"},
        ).is_success
        plane.patch("deployments", "default/web", {"spec": {"replicas": 3}})
        plane.until(lambda: "failed calling webhook" in failure(plane), "the failure")
        assert ready(plane) == 2
        assert client.delete(f"{path}/sidecars").is_success
        plane.until(lambda: ready(plane) == 3, "the third pod")
        check_migration(plane, client, server)


def check_migration(plane: Plane, client: httpx.Client, server: WebhookServer) -> None:
    """Checks that a migration has a webhook convert what is stored in an older version."""
    group = "shops.example.com"
    path = f"/apis/{group}/v1/namespaces/default/gateways"
    spec = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    schema = {"type": "object", "properties": {"spec": spec}}
    versions = [
        {"name": name, "served": True, "storage": name == "v1beta1",
         "schema": {"openAPIV3Schema": schema}}
        for name in ("v1beta1", "v1")
    ]  # fmt: skip
    webhook = {"clientConfig": server.at("convert"), "conversionReviewVersions": ["v1"]}
    body = {
        "metadata": {"name": f"gateways.{group}"},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"plural": "gateways", "kind": "Gateway"},
            "versions": versions,
            "conversion": {"strategy": "Webhook", "webhook": webhook},
        },
    }
    definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    assert client.post(definitions, json=body).status_code == 201
    gateway = {"metadata": {"name": "a"}, "spec": {"host": "shop", "port": 80}}
    kind = {"apiVersion": f"{group}/v1", "kind": "Gateway"}
    plane.until(lambda: client.post(path, json=kind | gateway).status_code == 201, "the kind")
    flipped = client.get(f"{definitions}/gateways.{group}").json()
    for one in flipped["spec"]["versions"]:
        one["storage"] = one["name"] == "v1"
    assert client.put(f"{definitions}/gateways.{group}", json=flipped).is_success
    migrations = "/apis/storagemigration.k8s.io/v1beta1/storageversionmigrations"
    resource = {"group": group, "resource": "gateways"}
    wanted = {"metadata": {"name": "gateways"}, "spec": {"resource": resource}}
    assert client.post(migrations, json=wanted).status_code == 201

    def states() -> list[str]:
        status = client.get(f"{migrations}/gateways").json().get("status", {})
        return [one["type"] for one in status.get("conditions", ()) if one["status"] == "True"]

    plane.until(lambda: "Succeeded" in states() or "Failed" in states(), "the migration")
    assert states() == ["Succeeded"]
    server.take_reviews()
    assert client.get(f"{path}/a").json()["spec"] == gateway["spec"]
    assert server.take_reviews() == []  # it is stored in v1


def ready(plane: Plane) -> int:
    return int(plane.get("deployments", "web").get("status", {}).get("readyReplicas", 0))


def failure(plane: Plane) -> str:
    for condition in plane.get("deployments", "web")["status"].get("conditions", ()):
        if condition["type"] == "ReplicaFailure":
            return str(condition["message"])
    return ""
