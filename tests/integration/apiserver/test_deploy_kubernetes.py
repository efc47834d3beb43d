"""`deploy/kubernetes`: what runs kcm inside of a cluster, applied by kubectl."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from kcm.options.manager import ManagerOptions
from tests.docs.pages import ROOT
from tests.integration.apiserver.kubectl import VERSIONS, find
from tests.integration.apiserver.serving import Live

KUBECTL = find(VERSIONS[-1])
FOLDER = ROOT / "deploy" / "kubernetes"
REDIS = "/apis/apps/v1/namespaces/kcm/statefulsets/kcm-redis"
ROLES = "/apis/rbac.authorization.k8s.io/v1"
OVERLAYS = {"base": 3, "kubeadm": 7}  # with the number of settings of the manager
pytestmark = pytest.mark.skipif(KUBECTL is None, reason=f"kubectl {VERSIONS[-1]} is not here")


def run(*arguments: str) -> str:
    assert KUBECTL is not None
    done = subprocess.run([KUBECTL, *arguments], check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def render(folder: Path) -> list[dict[str, Any]]:
    return list(yaml.safe_load_all(run("kustomize", str(folder))))


def apply(api: Live, overlay: str) -> list[str]:
    kubeconfig = f"--kubeconfig={api.kubeconfig}"
    return run("apply", kubeconfig, "--validate=strict", "-k", str(FOLDER / overlay)).splitlines()


@pytest.fixture(autouse=True, scope="module")
def namespace(api: Live) -> None:
    api.create("/api/v1/namespaces", {"metadata": {"name": "kcm"}})


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_kubectl_applies_it_and_finds_nothing_to_change_then(api: Live, overlay: str) -> None:
    """kubectl sends the claim templates of a StatefulSet each time, since the server completes
    them; its generation says that nothing was changed.
    """
    apply(api, overlay)
    before = api.get(REDIS)["metadata"]["generation"]
    again = apply(api, overlay)
    assert len(again) == 10
    changed = [line.split()[0] for line in again if not line.endswith("unchanged")]
    assert changed == ["statefulset.apps/kcm-redis"]
    assert api.get(REDIS)["metadata"]["generation"] == before


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_the_roles_that_it_binds_are_there(api: Live, overlay: str) -> None:
    bindings = [one for one in render(FOLDER / overlay) if one["kind"].endswith("Binding")]
    assert len(bindings) == 3
    for binding in bindings:
        role, place = binding["roleRef"]["name"], binding["metadata"].get("namespace")
        path = f"namespaces/{place}/roles/{role}" if place else f"clusterroles/{role}"
        assert api.get(f"{ROLES}/{path}")["metadata"]["name"] == role
        assert binding["subjects"] == [
            {"kind": "ServiceAccount", "name": "kcm", "namespace": "kcm"}
        ]


@pytest.mark.parametrize(("overlay", "count"), OVERLAYS.items())
def test_its_settings_are_those_of_the_manager(overlay: str, count: int) -> None:
    rendered = render(FOLDER / overlay)
    settings = _settings(rendered)
    documented = (ROOT / "docs" / "configuration.md").read_text()
    assert [name for name in settings if f"`{name}`" not in documented] == []
    assert len(settings) == count + 1  # KCM_LOG_FORMAT is every process'
    for options in _options(rendered):
        assert options.generic.kubeconfig == "in-cluster"
        assert options.generic.controllers == ("*",)
        assert options.generic.use_service_account_credentials
        assert options.serving.loopback


def test_with_monitoring_it_serves_metrics_with_a_certificate_and_a_token(tmp_path: Path) -> None:
    folder = shutil.copytree(FOLDER, tmp_path / "kubernetes")
    with (folder / "kubeadm" / "kustomization.yaml").open("a") as overlay:
        overlay.write("components: [../monitoring]\n")
    rendered = render(folder / "kubeadm")
    [worker] = [one for one in rendered if one["metadata"]["name"] == "kcm-worker"
                and one["kind"] == "Deployment"]  # fmt: skip
    pod = worker["spec"]["template"]["spec"]
    [container] = pod["containers"]
    serving = next(
        options.serving for options in _options(rendered) if not options.serving.loopback
    )
    mounts = {one["mountPath"]: one["name"] for one in container["volumeMounts"]}
    files = serving.tls_cert_file, serving.tls_private_key_file, serving.bearer_token_file
    assert {mounts[path.rpartition("/")[0]] for path in files} == {"metrics"}
    assert [one["secret"]["secretName"] for one in pod["volumes"] if one["name"] == "metrics"] == [
        "kcm-metrics"
    ]
    for probe in ("readinessProbe", "livenessProbe"):
        assert container[probe].keys() & {"exec", "httpGet"} == {"httpGet"}
    kinds = [one["kind"] for one in rendered]
    assert (len(kinds), kinds.count("ServiceMonitor"), kinds.count("Service")) == (12, 1, 2)


def _settings(rendered: list[dict[str, Any]]) -> dict[str, str]:
    settings: dict[str, str]
    [settings] = [one["data"] for one in rendered if one["kind"] == "ConfigMap"]
    return settings


def _options(rendered: list[dict[str, Any]]) -> Iterator[ManagerOptions]:
    """Yields what the manager of each Deployment is told by its environment."""
    for one in rendered:
        if one["kind"] == "Deployment":
            [container] = one["spec"]["template"]["spec"]["containers"]
            own = {env["name"]: env["value"] for env in container["env"] if "value" in env}
            yield ManagerOptions.load({}, _settings(rendered) | own)
