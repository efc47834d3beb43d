"""A monitoring stack: definitions of more than 1 MB, customs, a DaemonSet, claims."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from kcm.testing.waiting import until
from tests.charts.definitions import GROUP, definition, write_definitions
from tests.charts.helm import CHARTS, WITH_HELM_4, Helm
from tests.integration.apiserver.kubectl import Kubectl
from tests.scenarios.cluster import API, APPS, Cluster

pytestmark = pytest.mark.scenario

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


@pytest.fixture
def chart(tmp_path: Path) -> Path:
    """Returns the chart with its definitions."""
    folder = Path(shutil.copytree(CHARTS / "monitoring", tmp_path / "monitoring"))
    assert write_definitions(folder / "crds") > 1_500_000
    return folder


def test_a_stack_comes_up_with_definitions_rules_and_claims(
    cluster: Cluster, helm: Helm, chart: Path
) -> None:
    helm.install("stack", chart)
    daemons = f"{APPS}/namespaces/{helm.namespace}/daemonsets/exporter"
    until(lambda: cluster.get(daemons)["status"]["numberReady"] == 3, "one on each node")
    servers = f"{APPS}/namespaces/{helm.namespace}/statefulsets/server"
    until(lambda: cluster.get(servers)["status"]["readyReplicas"] == 2, "both servers")
    claims = f"{API}/namespaces/{helm.namespace}/persistentvolumeclaims"
    assert cluster.names(claims) == ["data-server-0", "data-server-1"]
    assert {item["status"]["phase"] for item in cluster.get(claims)["items"]} == {"Bound"}
    customs = f"/apis/{GROUP}/v1/namespaces/{helm.namespace}"
    assert cluster.names(f"{customs}/rules") == ["nodes"]
    assert len(cluster.names(f"{API}/namespaces/{helm.namespace}/configmaps")) == 12 + 1

    helm.upgrade("stack", chart, "--set", "retention=30d,dashboards=3")
    assert cluster.get(f"{customs}/servers/main")["spec"]["retention"] == "30d"
    assert len(cluster.names(f"{API}/namespaces/{helm.namespace}/configmaps")) == 3 + 1
    helm.uninstall("stack")
    assert cluster.names(f"{customs}/rules") == []
    assert cluster.names(claims) == ["data-server-0", "data-server-1"]  # Retain
    assert cluster.has(f"{DEFINITIONS}/rules.{GROUP}")


@WITH_HELM_4
def test_definitions_beyond_an_annotation_are_applied_on_the_server(
    cluster: Cluster, helm: Helm, kubectl: Kubectl, tmp_path: Path
) -> None:
    file = tmp_path / "large.json"
    file.write_text(json.dumps(definition("Large", fields=24, depth=4)))
    assert file.stat().st_size > 1_200_000
    refused = kubectl.run_failing("apply", "-f", str(file))
    assert "metadata.annotations: Too long: may not be more than 262144 bytes" in refused
    for _ in range(2):
        kubectl("apply", "--server-side", "-f", str(file))
    path = f"{DEFINITIONS}/larges.{GROUP}"
    kubectl("wait", "--for=condition=Established", "-f", str(file), "--timeout=30s")
    field = ("explain", f"larges.{GROUP}.spec.sectiona.sectionb.setting3")
    until(lambda: "Setting 3." in kubectl.run(*field).stdout, "the field's description")
    kubectl("delete", "-f", str(file))
    assert not cluster.has(path)
