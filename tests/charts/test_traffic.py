"""A demo of ten small services, and an ingress controller as it may stand before them."""

from __future__ import annotations

from typing import Any

import pytest

from kcm.testing.waiting import until
from tests.charts.helm import CHARTS, WITH_HELM_3, WITH_HELM_4, Helm
from tests.integration.apiserver.kubectl import Kubectl
from tests.scenarios.cluster import API, APPS, Cluster

pytestmark = pytest.mark.scenario

WEBHOOKS = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
NETWORK = "/apis/networking.k8s.io/v1"
# The Jobs of simulated nodes make no certificate, so the webhook has none, and is not asked.
NO_WEBHOOK = ("--set", "webhook.failurePolicy=Ignore,webhook.timeoutSeconds=1")


FEW = (
    "--set",
    ",".join(f"services.{name}=null" for name in ("ads", "mail", "cart", "payment", "shipping"))
    + ",services.currency=null,ingress.enabled=false",
)


def replicas(cluster: Cluster, helm: Helm, key: str = "availableReplicas") -> list[int]:
    deployments = cluster.get(f"{APPS}/namespaces/{helm.namespace}/deployments")["items"]
    return [one["status"].get(key, 0) for one in deployments]


@WITH_HELM_3
def test_ten_services_come_up_and_go(cluster: Cluster, helm: Helm) -> None:
    said = helm.install("shop", "shop")
    assert "https://shop.example.com/ on Kubernetes v1.36.2" in said
    until(lambda: replicas(cluster, helm) == [1] * 10, "one of each")
    tested = helm("test", "shop", "--logs")
    assert "frontend answers" in tested
    assert "checkout answers" in tested
    helm.upgrade("shop", "shop", "--set", "replicas=2")
    # helm 3 waits for ReplicaSets only; the Deployments' statuses follow.
    until(lambda: replicas(cluster, helm) == [2] * 10, "two of each")
    helm.rollback("shop", 1)
    assert helm.history("shop") == ["superseded", "superseded", "deployed"]
    helm.uninstall("shop")
    path = f"{APPS}/namespaces/{helm.namespace}"
    for kind in ("deployments", "replicasets"):
        cluster.wait_until_empty(f"{path}/{kind}")
    assert cluster.names(f"{API}/namespaces/{helm.namespace}/services") == []


@WITH_HELM_4
def test_an_upgrade_that_never_gets_ready_is_taken_back(
    cluster: Cluster, helm: Helm, kubectl: Kubectl
) -> None:
    helm.install("shop", "shop", *FEW)
    wrong = r"annotations.simulation\.kcm\.dev/outcome=never-ready"
    failed = helm.run(
        "upgrade", "shop", str(CHARTS / "shop"), *FEW, "--set-string", wrong,
        "--wait", "--atomic", "--timeout", "5s",
    )  # fmt: skip
    assert failed.returncode == 1
    assert "has been rolled back" in failed.stderr
    assert helm.history("shop") == ["superseded", "failed", "deployed"]
    until(lambda: replicas(cluster, helm) == [1] * 4, "those of before")
    manifest = helm("get", "manifest", "shop")
    assert kubectl("diff", "-f", "-", stdin=manifest) == ""
    helm.uninstall("shop")
    assert helm.run("status", "shop").returncode == 1


@pytest.mark.long
@WITH_HELM_3
def test_an_install_that_never_gets_ready_leaves_nothing(cluster: Cluster, helm: Helm) -> None:
    failed = helm.run(
        "install", "shop", str(CHARTS / "shop"), "--create-namespace", *FEW,
        "--set-string", r"annotations.simulation\.kcm\.dev/outcome=image-pull-error",
        "--wait", "--atomic", "--timeout", "3s",
    )  # fmt: skip
    assert failed.returncode == 1
    assert "has been uninstalled" in failed.stderr
    assert cluster.names(f"{APPS}/namespaces/{helm.namespace}/deployments") == []


# --- the ingress controller


def set_class(name: str) -> tuple[str, str]:
    return "--set", f"class.name={name}"


def ingress(name: str, cls: str) -> dict[str, Any]:
    return {
        "metadata": {"name": name},
        "spec": {
            "ingressClassName": cls,
            "defaultBackend": {"service": {"name": "shop", "port": {"number": 80}}},
        },
    }


def has_address(cluster: Cluster, service: str) -> bool:
    return bool(cluster.get(service)["status"]["loadBalancer"].get("ingress"))


@WITH_HELM_3
def test_a_controller_gets_its_address_certificate_and_budget(cluster: Cluster, helm: Helm) -> None:
    own_class = set_class(helm.namespace)
    helm.install("edge", "ingress", *NO_WEBHOOK, *own_class)
    namespace = f"{API}/namespaces/{helm.namespace}"
    service = f"{namespace}/services/ingress-controller"
    assert has_address(cluster, service)
    assert cluster.get(service)["spec"]["healthCheckNodePort"]
    # Hooks go when they have succeeded, roles and accounts too.
    for path in (
        f"/apis/batch/v1/namespaces/{helm.namespace}/jobs",
        f"/apis/rbac.authorization.k8s.io/v1/namespaces/{helm.namespace}/roles",
    ):
        cluster.wait_until_empty(path)
    assert not cluster.has(f"{namespace}/serviceaccounts/ingress-admission")

    budget = f"/apis/policy/v1/namespaces/{helm.namespace}/poddisruptionbudgets/ingress-controller"
    autoscaler = (
        f"/apis/autoscaling/v2/namespaces/{helm.namespace}/horizontalpodautoscalers/"
        "ingress-controller"
    )
    until(lambda: cluster.get(budget)["status"]["disruptionsAllowed"] == 1, "two pods")
    until(lambda: cluster.get(autoscaler)["status"]["desiredReplicas"] == 2, "the autoscaler")

    path = f"{NETWORK}/namespaces/{helm.namespace}/ingresses"
    assert cluster.create(path, ingress("shop", helm.namespace)).status_code == 201
    helm.upgrade("edge", "ingress", *NO_WEBHOOK, *own_class, "--set", "service.type=ClusterIP")
    deployment = cluster.get(f"{APPS}/namespaces/{helm.namespace}/deployments/ingress-controller")
    assert deployment["spec"]["replicas"] == 2  # not in the chart: the autoscaler's stays
    until(lambda: not has_address(cluster, service), "the end of the load balancer")
    helm.rollback("edge", 1)
    assert has_address(cluster, service)
    helm.uninstall("edge")
    assert not cluster.has(f"{WEBHOOKS}/{helm.namespace}-admission")
    until(lambda: not cluster.has(service), "the end of the Service")


@pytest.mark.long
@WITH_HELM_4
def test_a_webhook_without_a_server_refuses_until_it_is_gone(cluster: Cluster, helm: Helm) -> None:
    own_class = (*set_class(helm.namespace), "--set", "webhook.timeoutSeconds=1")
    helm.install("edge", "ingress", *own_class)
    path = f"{NETWORK}/namespaces/{helm.namespace}/ingresses"
    refused = cluster.create(path, ingress("shop", helm.namespace))
    assert refused.status_code == 500
    assert 'failed calling webhook "validate.edge.ingress' in refused.json()["message"]
    helm.upgrade("edge", "ingress", *own_class, "--set", "webhook.enabled=false")
    assert not cluster.has(f"{WEBHOOKS}/{helm.namespace}-admission")
    assert cluster.create(path, ingress("shop", helm.namespace)).status_code == 201
    helm.uninstall("edge")
