"""The metrics APIs: usage of nodes and pods, custom and external metrics."""

from __future__ import annotations

import time
from typing import Any

import pytest

from kcm.apimachinery.quantity import Quantity
from kcm.store.resource_metrics.usage import NodeReport, PodUsage, UsageBoard
from kcm.testing.waiting import until
from tests.integration.apiserver.kubectl import Kubectl
from tests.integration.apiserver.serving import Live

METRICS = "/apis/metrics.k8s.io/v1beta1"
CUSTOM = "/apis/custom.metrics.k8s.io/v1beta2/namespaces/default"
EXTERNAL = "/apis/external.metrics.k8s.io/v1beta1/namespaces/default"
CONTAINER = {"name": "app", "image": "i:1"}


@pytest.fixture(scope="module")
def board(api: Live) -> UsageBoard:
    """Returns the board with the usage of two pods on one of two nodes."""
    for node in ("m1", "m2"):
        api.create("/api/v1/nodes", {"metadata": {"name": node, "labels": {"rack": node}}})
    for name in ("one", "two"):
        spec = {"nodeName": "m1", "containers": [CONTAINER]}
        metadata = {"name": name, "labels": {"app": name}}
        api.create("/api/v1/namespaces/default/pods", {"metadata": metadata, "spec": spec})
    board = UsageBoard(api.store.io)
    amounts = {"cpu": Quantity("150m"), "memory": Quantity("64Mi")}
    own = {"hits": Quantity("12")}
    pods = {
        "default/one": PodUsage({"app": amounts}, own),
        "default/two": PodUsage({"app": amounts}),
    }
    board.report([NodeReport("m1", time.time(), 15.0, dict(amounts), pods)], lasts=600)
    board.publish("services", "hits", "default/web{verb=get}", Quantity("2500m"))
    board.publish("services", "hits", "default/web{verb=put}", Quantity(1))
    board.publish("namespaces", "load", "default", Quantity(3))
    board.publish("external", "length", "default{queue=a}", Quantity(30))
    board.publish("external", "length", "default{queue=b}", Quantity(70))
    return board


def names(answer: Any) -> list[str]:
    return [item["metadata"]["name"] for item in answer["items"]]


def values(answer: Any) -> list[tuple[str, str]]:
    about = [item.get("describedObject", {}).get("name", "") for item in answer["items"]]
    return list(zip(about, [item["value"] for item in answer["items"]], strict=True))


def test_nodes_and_pods_show_what_they_use(api: Live, board: UsageBoard) -> None:
    stored = api.get(f"{METRICS}/nodes")
    assert (stored["kind"], names(stored)) == ("NodeMetricsList", ["m1"])
    [node] = stored["items"]
    assert (node["usage"], node["window"]) == ({"cpu": "150m", "memory": "64Mi"}, "15s")
    assert node["metadata"]["labels"] == {"rack": "m1"}
    pods = api.get(f"{METRICS}/namespaces/default/pods", labelSelector="app=two")
    assert (pods["kind"], names(pods)) == ("PodMetricsList", ["two"])
    assert names(api.get(f"{METRICS}/pods")) == ["one", "two"]
    one = api.get(f"{METRICS}/namespaces/default/pods/one")
    assert one["containers"] == [{"name": "app", "usage": {"cpu": "150m", "memory": "64Mi"}}]


@pytest.mark.parametrize(
    ("method", "path", "code"),
    [
        ("GET", f"{METRICS}/nodes/m2", 404),
        ("GET", f"{METRICS}/namespaces/default/pods/three", 404),
        ("GET", f"{METRICS}/namespaces/default/pods/one/status", 404),
        ("GET", f"{METRICS}/nodes?watch=true", 405),
        ("POST", f"{METRICS}/nodes", 405),
        ("DELETE", f"{METRICS}/nodes/m1", 405),
        ("GET", f"{CUSTOM}/pods/one/misses", 404),
        ("GET", f"{CUSTOM}/things/one/hits", 404),
        ("GET", f"{CUSTOM}/pods/one", 404),
        ("GET", f"{EXTERNAL}/length/more", 404),
        ("GET", "/apis/external.metrics.k8s.io/v1beta1/length", 404),
    ],
)
def test_what_there_is_not_is_refused(
    api: Live, board: UsageBoard, method: str, path: str, code: int
) -> None:
    assert api.request(method, path).status_code == code


def test_custom_metrics_are_of_objects_pods_and_namespaces(api: Live, board: UsageBoard) -> None:
    stored = api.get(f"{CUSTOM}/services/web/hits")
    assert (stored["kind"], values(stored)) == ("MetricValueList", [("web", "3500m")])
    assert stored["items"][0]["describedObject"]["kind"] == "Service"
    only = api.get(f"{CUSTOM}/services/web/hits", metricLabelSelector="verb=put")
    assert values(only) == [("web", "1")]
    assert values(api.get(f"{CUSTOM}/pods/*/hits")) == [("one", "12")]
    assert values(api.get(f"{CUSTOM}/pods/*/hits", labelSelector="app=two")) == []
    assert values(api.get(f"{CUSTOM}/pods/one/hits")) == [("one", "12")]
    assert values(api.get(f"{CUSTOM}/metrics/load")) == [("default", "3")]


def test_external_metrics_have_labels(api: Live, board: UsageBoard) -> None:
    stored = api.get(f"{EXTERNAL}/length")
    assert stored["kind"] == "ExternalMetricValueList"
    assert [(item["metricLabels"], item["value"]) for item in stored["items"]] == [
        ({"queue": "a"}, "30"),
        ({"queue": "b"}, "70"),
    ]
    assert values(api.get(f"{EXTERNAL}/length", labelSelector="queue=b")) == [("", "70")]
    assert values(api.get(f"{EXTERNAL}/nothing")) == []


def test_discovery_tells_of_the_groups_and_of_what_is_published(
    api: Live, board: UsageBoard
) -> None:
    groups = {group["name"]: group for group in api.get("/apis")["groups"]}
    assert groups["custom.metrics.k8s.io"]["preferredVersion"]["version"] == "v1beta2"
    resources = api.get(METRICS)["resources"]
    assert [(r["name"], r["kind"], r["verbs"]) for r in resources] == [
        ("nodes", "NodeMetrics", ["get", "list"]),
        ("pods", "PodMetrics", ["get", "list"]),
    ]
    custom = api.get("/apis/custom.metrics.k8s.io/v1beta2")["resources"]
    assert [r["name"] for r in custom] == ["namespaces/load", "services/hits"]
    external = api.get("/apis/external.metrics.k8s.io/v1beta1")["resources"]
    assert [r["name"] for r in external] == ["length"]


def test_a_viewer_may_see_what_is_used_and_nobody_else(api: Live, board: UsageBoard) -> None:
    rbac = "/apis/rbac.authorization.k8s.io/v1/namespaces/default/rolebindings"
    with api.as_user("bobs-token") as bob:
        path = f"{METRICS}/namespaces/default/pods"
        assert bob.get(path).status_code == 403
        role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"}
        user = {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "bob"}
        api.create(rbac, {"metadata": {"name": "see"}, "roleRef": role, "subjects": [user]})
        until(lambda: bob.get(path).status_code == 200, "the right to look")
        assert names(bob.get(path).json()) == ["one", "two"]
        assert bob.get(f"{METRICS}/nodes").status_code == 403


def test_kubectl_top_shows_pods_and_nodes(kubectl: Kubectl, board: UsageBoard) -> None:
    title, *lines = kubectl("top", "pods", "-n", "default").splitlines()
    assert title.split() == ["NAME", "CPU(cores)", "MEMORY(bytes)"]
    assert [line.split() for line in lines] == [["one", "150m", "64Mi"], ["two", "150m", "64Mi"]]
    assert "app" in kubectl("top", "pod", "one", "-n", "default", "--containers")
    nodes = kubectl("top", "nodes", "--show-capacity").splitlines()
    assert nodes[1].split()[:2] == ["m1", "150m"]
    title, line = kubectl("get", "nodes.metrics.k8s.io").splitlines()
    assert title.split() == ["NAME", "CPU", "MEMORY", "WINDOW"]
    assert line.split() == ["m1", "150m", "64Mi", "15s"]


def test_kubectl_still_means_the_stored_kinds(kubectl: Kubectl, board: UsageBoard) -> None:
    assert "STATUS" in kubectl("get", "pods", "-n", "default")
    assert "podmetrics" not in kubectl("get", "pods", "-n", "default", "-o", "name")
