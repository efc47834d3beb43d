"""Charts of two operators: webhooks with certificates, and a GitOps controller."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from kcm.testing.waiting import until
from tests.charts.conftest import skip_without_helm
from tests.charts.helm import CHARTS, TIMEOUT, WITH_HELM_3, WITH_HELM_4, Helm
from tests.integration.apiserver.kubectl import Kubectl
from tests.scenarios.cluster import API, APPS, Cluster, running
from tests.scenarios.system import ROOT

pytestmark = pytest.mark.scenario

GROUP = "/apis/certificates.example.com/v1"
WEBHOOKS = "/apis/admissionregistration.k8s.io/v1/{}webhookconfigurations"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
DEFINED = {f"{name}.certificates.example.com" for name in ("certificates", "issuers")}
LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases"
IGNORE = ("--set", "webhook.failurePolicy=Ignore,webhook.timeoutSeconds=1")
# The pods of the chart as processes of this machine.
ON_THIS_MACHINE = {
    "command": [sys.executable, "-m", "tests.charts.certificate_programs"],
    "environment": {"PYTHONPATH": str(ROOT)},
    "placement": {
        "nodeSelector": {"kcm.dev/process": "true"},
        "tolerations": [{"key": "kcm.dev/process", "operator": "Exists"}],
    },
}
ROLES = "/apis/rbac.authorization.k8s.io/v1/clusterroles"
FROM_HELM = "meta.helm.sh/release-name"


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    """Yields a kcm whose machine is a node, too."""
    skip_without_helm()
    with running("--kubelet") as cluster:
        yield cluster


def certificate(name: str, **spec: Any) -> dict[str, Any]:
    spec = {"secretName": f"{name}-tls", "issuer": "self", **spec}
    return {
        "apiVersion": "certificates.example.com/v1",
        "kind": "Certificate",
        "metadata": {"name": name},
        "spec": spec,
    }


def available(cluster: Cluster, helm: Helm) -> list[int]:
    deployments = cluster.get(f"{APPS}/namespaces/{helm.namespace}/deployments")["items"]
    return [one["status"].get("availableReplicas", 0) for one in deployments]


@WITH_HELM_4
def test_on_simulated_nodes_its_webhooks_have_to_be_ignored(cluster: Cluster, helm: Helm) -> None:
    helm.install("certs", "certificates", *IGNORE)
    until(lambda: available(cluster, helm) == [1, 1, 1], "the three parts")
    cluster.wait_until_empty(f"/apis/batch/v1/namespaces/{helm.namespace}/jobs")
    path = f"{GROUP}/namespaces/{helm.namespace}/certificates"
    made = cluster.create(path, certificate("web"))
    assert made.status_code == 201
    assert "duration" not in made.json()["spec"]
    helm.upgrade("certs", "certificates", *IGNORE, "--set", "startupcheck.enabled=false")
    assert helm.history("certs") == ["superseded", "deployed"]
    helm.uninstall("certs")
    assert cluster.names(path) == ["web"]  # its definition is kept
    for kind in ("mutating", "validating"):
        assert f"{helm.namespace}-webhook" not in cluster.names(WEBHOOKS.format(kind))
    # A release of another name may not take over what the first one left.
    refused = helm.run("install", "other", str(ROOT / "tests/charts/data/certificates"))
    assert refused.returncode == 1
    assert "invalid ownership metadata" in refused.stderr
    for name in DEFINED:
        assert cluster.client.delete(f"{DEFINITIONS}/{name}").is_success
    until(lambda: not DEFINED & set(cluster.names(DEFINITIONS)), "the end of the definitions")


@WITH_HELM_3
def test_its_programs_run_on_this_machine_and_webhooks_hold(
    cluster: Cluster, helm: Helm, tmp_path: Path
) -> None:
    values = tmp_path / "values.yaml"
    values.write_text(yaml.safe_dump(ON_THIS_MACHINE))
    here = ("--values", str(values), "--set", "crds.keep=false")
    helm.install("certs", "certificates", *here)  # its last hook waits for the webhook
    path = f"{GROUP}/namespaces/{helm.namespace}/certificates"
    refused = cluster.create(path, certificate("web"))
    assert refused.status_code == 422
    assert "at least one of commonName, dnsNames must be set" in refused.json()["message"]
    made = cluster.create(path, certificate("web", dnsNames=["web.example.com"])).json()
    assert made["spec"]["duration"] == "2160h"
    secret = f"{API}/namespaces/{helm.namespace}/secrets/web-tls"
    until(lambda: cluster.has(secret), "the certificate's Secret")
    until(lambda: cluster.get(f"{path}/web").get("status"), "the condition")
    assert f"{helm.namespace}-controller" in cluster.names(LEASES)

    # helm does not know the caBundle, which is another's: an upgrade leaves it, or it comes back.
    helm.upgrade("certs", "certificates", *here, "--set", "webhook.timeoutSeconds=7")

    def holds() -> bool:
        return cluster.create(path, certificate("bad")).status_code == 422

    until(holds, "the webhook after the upgrade")
    timeouts = cluster.get(f"{WEBHOOKS.format('validating')}/{helm.namespace}-webhook")["webhooks"]
    assert [one["timeoutSeconds"] for one in timeouts] == [7]
    helm.uninstall("certs")
    definition = f"{DEFINITIONS}/certificates.certificates.example.com"
    until(lambda: not cluster.has(definition), "the end of the definition")


# --- the GitOps controller


def application(**destination: str) -> dict[str, Any]:
    spec = {"source": {"url": "https://git.example.com/shop"}, "destination": destination}
    return {
        "apiVersion": "gitops.example.com/v1",
        "kind": "Application",
        "metadata": {"name": "shop"},
        "spec": spec,
    }


@pytest.mark.long
@WITH_HELM_4
def test_definitions_secrets_and_customs_outlive_the_release(cluster: Cluster, helm: Helm) -> None:
    helm.install("gitops", "gitops")
    secret = f"{API}/namespaces/{helm.namespace}/secrets/gitops-admin"
    password = cluster.get(secret)["data"]["password"]
    settings = cluster.get(f"{API}/namespaces/{helm.namespace}/configmaps/gitops-settings")
    assert settings["data"]["POLICIES"] == "true"
    assert settings["data"]["MONITORS"] == "false"

    applications = f"/apis/gitops.example.com/v1/namespaces/{helm.namespace}/applications"
    assert cluster.create(applications, application()).status_code == 422
    made = cluster.create(applications, application(namespace="shop"))
    assert made.json()["spec"]["project"] == "default"

    helm.upgrade("gitops", "gitops", "--set", "interval=1m,controllers=2")
    assert cluster.get(secret)["data"]["password"] == password
    sets = cluster.get(f"{APPS}/namespaces/{helm.namespace}/statefulsets/gitops-controller")
    assert sets["status"]["readyReplicas"] == sets["status"]["updatedReplicas"] == 2
    cluster.wait_until_empty(f"/apis/batch/v1/namespaces/{helm.namespace}/jobs")

    helm.uninstall("gitops")
    assert cluster.get(secret)["data"]["password"] == password
    assert cluster.names(applications) == ["shop"]
    definition = f"{DEFINITIONS}/applications.gitops.example.com"
    assert FROM_HELM not in cluster.get(definition)["metadata"].get("annotations", {})
    helm.install("gitops", "gitops", "--skip-crds")
    assert cluster.get(secret)["data"]["password"] == password
    helm.uninstall("gitops")


@pytest.mark.long
@WITH_HELM_3
def test_rights_are_aggregated_to_the_release_and_to_users(
    cluster: Cluster, helm: Helm, kubectl: Kubectl
) -> None:
    helm.install("gitops", "gitops", "--set", "networkPolicies=false")
    role = f"{ROLES}/{helm.namespace}-controller"
    until(lambda: len(cluster.get(role)["rules"]) == 3, "the aggregated rules")
    account = f"system:serviceaccount:{helm.namespace}:gitops-controller"
    assert kubectl("auth", "can-i", "delete", "nodes", "--as", account) == "yes\n"
    kubectl("create", "rolebinding", "jane", "--clusterrole=edit", "--user=jane")
    patch = ("auth", "can-i", "patch", "applications.gitops.example.com", "--as", "jane")
    until(lambda: kubectl.run(*patch).stdout == "yes\n", "the right of those who edit")
    # An upgrade does not take what the control plane has filled in.
    helm.upgrade("gitops", "gitops", "--set", "networkPolicies=true")
    until(lambda: len(cluster.get(role)["rules"]) == 3, "the aggregated rules")
    helm.uninstall("gitops")
    gone = ("auth", "can-i", "delete", "nodes", "--as", account)
    until(lambda: kubectl.run(*gone).stdout == "no\n", "the end of the right")


@pytest.mark.long
@WITH_HELM_3
def test_a_hook_that_fails_stops_the_upgrade(cluster: Cluster, helm: Helm) -> None:
    helm.install("gitops", "gitops")
    path = f"{APPS}/namespaces/{helm.namespace}/deployments/gitops-server"
    failed = helm.run(
        "upgrade", "gitops", str(CHARTS / "gitops"), "--set", "migrate.fail=true,server.replicas=3",
        "--wait", "--timeout", TIMEOUT,
    )  # fmt: skip
    assert failed.returncode == 1
    assert "pre-upgrade hooks failed" in failed.stderr
    assert cluster.get(path)["spec"]["replicas"] == 2
    jobs = f"/apis/batch/v1/namespaces/{helm.namespace}/jobs"
    assert "gitops-migrate" in cluster.names(jobs)
    helm.rollback("gitops", 1)
    cluster.wait_until_empty(jobs)
    assert helm.history("gitops") == ["superseded", "failed", "deployed"]
    helm.uninstall("gitops")


def test_what_was_changed_by_hand_meets_the_next_upgrade(
    cluster: Cluster, helm: Helm, kubectl: Kubectl
) -> None:
    """helm 3 merges three ways, helm 4 applies on the server and names who else owns a field."""
    helm.install("gitops", "gitops")
    deployment = f"{APPS}/namespaces/{helm.namespace}/deployments/gitops-server"
    kubectl("annotate", "deployment", "gitops-server", "example.com/owner=ada")
    kubectl("set", "env", "deployment/gitops-server", "LEVEL=debug")
    kubectl("scale", "deployment", "gitops-server", "--replicas=1")
    upgrade = ("upgrade", "gitops", str(CHARTS / "gitops"), *helm.waiting)
    done = helm.run(*upgrade)
    if helm.version == "4":
        assert done.returncode == 1
        assert 'with subresource "scale" using apps/v1: .spec.replicas' in done.stderr
        done = helm.run(*upgrade, "--force-conflicts")
    assert done.returncode == 0, done.stderr
    found = cluster.get(deployment)
    assert found["metadata"]["annotations"]["example.com/owner"] == "ada"
    assert found["spec"]["replicas"] == found["status"]["readyReplicas"] == 2
    env = found["spec"]["template"]["spec"]["containers"][0].get("env")
    assert env == [{"name": "LEVEL", "value": "debug"}]
    helm.uninstall("gitops")
