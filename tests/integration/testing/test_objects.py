"""Objects as a test writes and reads them: manifests of every form, patches, users, webhooks."""

from __future__ import annotations

import json
import ssl
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pydantic
import pytest
import yaml
from kubernetes import client

from kcm import errors
from kcm.testing import ApiError, ControlPlane
from tests.integration.official_client import open_official_client
from tests.integration.testing.objects import CRON_TABS, WEB, deployment

LIST = """
apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: ConfigMap, metadata: {name: of-list}}
- {apiVersion: v1, kind: Secret, metadata: {name: of-list}}
"""
MINE = {"apiVersion": "example.com/v1", "kind": "CronTab", "metadata": {"name": "mine"}}


@pytest.fixture(scope="module")
def plane() -> Iterator[ControlPlane]:
    with ControlPlane(nodes=0) as started:
        yield started


def config_map(name: str, **metadata: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, **metadata}}


class Model(pydantic.BaseModel):
    """A model as users define theirs."""

    api_version: str = pydantic.Field(default="v1", alias="apiVersion")
    kind: str = "ConfigMap"
    metadata: dict[str, str]
    data: dict[str, str] | None = None


def test_a_folder_is_applied_with_its_definitions_first(
    plane: ControlPlane, tmp_path: Path
) -> None:
    (tmp_path / "a-mine.json").write_text(json.dumps(MINE))
    (tmp_path / "b-crd.yaml").write_text(CRON_TABS)
    (tmp_path / "notes.txt").write_text("not a manifest")
    kinds = [one["kind"] for one in plane.apply(str(tmp_path))]
    assert kinds == ["CronTab", "CustomResourceDefinition"]
    conditions = plane.get("crd/crontabs.example.com")["status"]["conditions"]
    assert {"Established": "True"}.items() <= {c["type"]: c["status"] for c in conditions}.items()
    plane.delete("crd/crontabs.example.com")


@pytest.mark.parametrize(
    ("manifest", "names"),
    [
        (
            [config_map("one"), "{apiVersion: v1, kind: ConfigMap, metadata: {name: two}}"],
            "one two",
        ),
        (LIST, "of-list of-list"),
        (
            {"apiVersion": "v1", "kind": "ConfigMapList", "items": [{"metadata": {"name": "i"}}]},
            "i",
        ),
        (
            client.V1ConfigMap(metadata=client.V1ObjectMeta(name="model", labels={"a": "b"})),
            "model",
        ),
        (Model(metadata={"name": "pydantic"}), "pydantic"),
        ((), ""),
    ],
)
def test_manifests_have_many_forms(plane: ControlPlane, manifest: object, names: str) -> None:
    applied = plane.apply(manifest)
    assert [one["metadata"]["name"] for one in applied] == names.split()


def test_models_of_lightkube_and_kr8s_are_manifests(plane: ControlPlane) -> None:
    generic = pytest.importorskip("lightkube.generic_resource")
    made = generic.create_namespaced_resource("apps", "v1", "Deployment", "deployments")
    raw = deployment("of-lightkube")
    (applied,) = plane.apply(made(metadata=raw["metadata"], spec=raw["spec"]))
    assert applied["kind"] == "Deployment"
    # What is used of a kr8s.objects.APIObject, which needs a connection.
    (applied,) = plane.apply(SimpleNamespace(to_dict=lambda: config_map("of-kr8s")))
    assert applied["metadata"]["name"] == "of-kr8s"


def test_an_object_with_generate_name_is_created_each_time(plane: ControlPlane) -> None:
    manifest = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"generateName": "drawn-"}}
    names = {plane.apply(manifest)[0]["metadata"]["name"] for _ in range(2)}
    assert len(names) == 2


@pytest.mark.parametrize(
    ("manifest", "why"),
    [
        (config_map("a", namespace="shop"), "configmap/a names the namespace shop"),
        ({"apiVersion": "v1", "kind": "ConfigMap"}, "of the kind ConfigMap has no metadata.name"),
        (7, "int is no manifest"),
        ("- a\n- b\n", "has text instead of an object"),
    ],
)
def test_what_cannot_be_applied_is_told(plane: ControlPlane, manifest: object, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        plane.apply(manifest, "other")


def test_a_definition_whose_names_are_taken_is_told(plane: ControlPlane) -> None:
    plane.apply(CRON_TABS)
    other = CRON_TABS.replace("crontabs.", "tabs.").replace("plural: crontabs", "plural: tabs")
    with pytest.raises(ApiError, match=r"tabs\.example\.com is not established: .*in use"):
        plane.apply(other)
    for name in ("tabs", "crontabs"):
        plane.delete(f"crd/{name}.example.com")


def test_objects_are_patched_scaled_and_given_a_status(plane: ControlPlane) -> None:
    plane.apply(WEB)
    labels = plane.patch("deployment/web", {"metadata": {"labels": {"a": "b"}}})
    assert labels["metadata"]["labels"] == {"a": "b"}
    plane.patch("deployment/web", [{"op": "remove", "path": "/metadata/labels/a"}])
    containers = [{"name": "main", "image": "nginx:1.28"}]
    change = {"spec": {"template": {"spec": {"containers": containers}}}}
    plane.patch("deployment/web", change, patch_type="strategic")
    plane.scale("deployment/web", 7)
    status = {"status": {"conditions": [{"type": "Odd", "status": "True"}]}}
    patched = plane.patch("deployment/web", status, subresource="status")
    assert patched["spec"]["replicas"] == 7
    assert not patched["metadata"].get("labels")
    assert [one["type"] for one in patched["status"]["conditions"]] == ["Odd"]
    with pytest.raises(ValueError, match="use merge, strategic, json"):
        plane.patch("deployment/web", {}, patch_type="none")  # type: ignore[arg-type] # misuse
    with pytest.raises(ValueError, match="not of the form kind/name"):
        plane.get("service/kubernetes/status")


ALLOW = """
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: readers}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: view}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: Group, name: readers}]
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: robot}
"""


def test_others_have_a_kubeconfig_of_their_own(plane: ControlPlane) -> None:
    plane.apply(ALLOW)

    jane = plane.kubeconfig_for(user="jane", groups=["readers"])
    plane.eventually(lambda: not forbidden(jane))
    assert "jane" in forbidden(plane.kubeconfig_for(user="jane"))
    robot = plane.kubeconfig_for(service_account="default/robot")
    assert "system:serviceaccount:default:robot" in forbidden(robot)
    with pytest.raises(ApiError, match="not found"):
        plane.kubeconfig_for(service_account="nobody")
    with pytest.raises(ValueError, match="either user= with groups=, or service_account="):
        plane.kubeconfig_for(groups=["readers"])


def forbidden(kubeconfig: Path) -> str:
    """Returns why a client may not list ConfigMaps, an empty text if it may."""
    try:
        with open_official_client(kubeconfig) as connection:
            client.CoreV1Api(connection).list_namespaced_config_map("default")
    except client.ApiException as error:
        return str(json.loads(error.body or "{}")["message"])
    return ""


WEBHOOKS = """
apiVersion: v1
kind: Service
metadata: {name: left-out}
spec: {ports: [{port: 1}]}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: says-no}
webhooks:
- name: no.example.com
  clientConfig: {service: {name: hooks, namespace: system, path: /validate}}
  rules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [secrets]}]
  admissionReviewVersions: [v1]
  sideEffects: None
"""


def test_conversion_webhooks_are_called_there_as_well(plane: ControlPlane) -> None:
    definition = yaml.safe_load(CRON_TABS)
    service = {"name": "hooks", "namespace": "system", "path": "/convert"}
    webhook = {"clientConfig": {"service": service}, "conversionReviewVersions": ["v1"]}
    definition["spec"]["conversion"] = {"strategy": "Webhook", "webhook": webhook}
    plane.install_webhooks(definition, "https://127.0.0.1:9443/")
    stored = plane.get("crd/crontabs.example.com")["spec"]["conversion"]["webhook"]
    assert stored["clientConfig"]["url"] == "https://127.0.0.1:9443/convert"
    assert stored["clientConfig"]["caBundle"]
    plane.delete("crd/crontabs.example.com")


class SaysNo(BaseHTTPRequestHandler):
    """Refuses every object."""

    def do_POST(self) -> None:
        review = json.loads(self.rfile.read(int(self.headers["content-length"])))
        message = {"message": f"{self.path} says no"}
        answer = {"uid": review["request"]["uid"], "allowed": False, "status": message}
        body = json.dumps({**review, "response": answer}).encode()
        self.send_response(200)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Says nothing."""


def test_webhooks_are_called_where_the_test_serves_them(plane: ControlPlane) -> None:
    with pytest.raises(ValueError, match="called by HTTPS"):
        plane.install_webhooks(WEBHOOKS, "http://127.0.0.1")
    with pytest.raises(ValueError, match="no webhook configuration"):
        plane.install_webhooks(WEB, "https://127.0.0.1")
    server = HTTPServer(("127.0.0.1", 0), SaysNo)
    files = plane.install_webhooks(WEBHOOKS, f"https://127.0.0.1:{server.server_port}")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(files.certificate, files.key)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}}
    try:
        with pytest.raises(ApiError, match=r"/validate\?timeout=10s says no"):
            plane.apply(secret)
    finally:
        plane.delete("validatingwebhookconfiguration/says-no")
        server.shutdown()
        server.server_close()
    with pytest.raises(ApiError, match="not found"):
        plane.get("service/left-out")


def test_definitions_are_there_when_it_has_started(tmp_path: Path) -> None:
    (tmp_path / "crd.yaml").write_text(CRON_TABS)
    (tmp_path / "other.yaml").write_text(yaml.safe_dump(config_map("left-out")))
    with ControlPlane(nodes=0, crds=tmp_path) as plane:
        assert plane.list("crontabs") == []
        assert "left-out" not in str(plane.list("configmaps"))
    with pytest.raises(errors.ConfigurationError, match="crds= has no CustomResourceDefinition"):
        ControlPlane(nodes=0, crds=[]).start()
