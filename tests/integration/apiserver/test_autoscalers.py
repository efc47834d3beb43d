"""HorizontalPodAutoscalers over HTTP, in both versions, and kubectl's commands for them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kcm.api import autoscaling_v1 as v1
from tests.integration.apiserver.kubectl import Kubectl
from tests.integration.apiserver.serving import Live

PLURAL = "horizontalpodautoscalers"
V1, V2 = (f"/apis/autoscaling/{version}/namespaces/default/{PLURAL}" for version in ("v1", "v2"))
TARGET = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
BEHAVIOR = {"scaleUp": {"stabilizationWindowSeconds": 30}}
CONDITION = {"type": "AbleToScale", "status": "True", "reason": "ReadyForNewScale", "message": "m"}
CURRENT = {
    "type": "Resource",
    "resource": {"name": "cpu", "current": {"averageUtilization": 10, "averageValue": "10m"}},
}


def body(name: str, **spec: Any) -> dict[str, Any]:
    return {
        "metadata": {"name": name},
        "spec": {"scaleTargetRef": TARGET, "maxReplicas": 5, **spec},
    }


def memory(average: str) -> dict[str, Any]:
    target = {"type": "AverageValue", "averageValue": average}
    return {"type": "Resource", "resource": {"name": "memory", "target": target}}


def test_one_created_in_v1_is_the_same_in_v2(api: Live) -> None:
    created = api.create(V1, body("old", targetCPUUtilizationPercentage=60))
    assert created["apiVersion"] == "autoscaling/v1"
    [metric] = api.get(f"{V2}/old")["spec"]["metrics"]
    assert metric["resource"]["target"] == {"type": "Utilization", "averageUtilization": 60}
    plain = api.create(V1, body("plain"))
    assert plain["spec"]["targetCPUUtilizationPercentage"] == 80


def test_an_update_in_v1_keeps_what_v1_does_not_know(api: Live) -> None:
    api.create(V2, body("rich", metrics=[memory("1Gi")], behavior=BEHAVIOR))
    status = {
        "status": {"desiredReplicas": 2, "currentMetrics": [CURRENT], "conditions": [CONDITION]}
    }
    assert api.patch(f"{V2}/rich/status", status).status_code == 200
    before = api.get(f"{V2}/rich")
    seen = api.get(f"{V1}/rich")
    assert seen["status"]["currentCPUUtilizationPercentage"] == 10
    seen["spec"]["maxReplicas"] = 7
    # A client that drops them takes the metrics away, but not what is status.
    for name in v1.OF_STATUS:
        del seen["metadata"]["annotations"][name]
    assert api.request("PUT", f"{V1}/rich", seen).status_code == 200
    after = api.get(f"{V2}/rich")
    assert after["spec"] == before["spec"] | {"maxReplicas": 7}
    assert after["status"] == before["status"]
    assert "annotations" not in after["metadata"]


def test_a_status_is_updated_in_v1_as_well(api: Live) -> None:
    api.create(V2, body("told"))
    seen = api.get(f"{V1}/told")
    seen["status"] |= {"currentReplicas": 3, "desiredReplicas": 4}
    conditions = json.dumps([CONDITION])
    seen["metadata"]["annotations"] = {v1.CONDITIONS: conditions}
    assert api.request("PUT", f"{V1}/told/status", seen).status_code == 200
    status = api.get(f"{V2}/told")["status"]
    assert (status["currentReplicas"], status["desiredReplicas"]) == (3, 4)
    assert status["conditions"] == [CONDITION]


def test_both_versions_are_listed_and_v2_is_preferred(api: Live) -> None:
    group = api.get("/apis/autoscaling")
    assert [version["version"] for version in group["versions"]] == ["v2", "v1"]
    api.create(V2, body("listed"))
    for path, version in ((V1, "v1"), (V2, "v2")):
        stored = api.get(path)
        assert stored["apiVersion"] == f"autoscaling/{version}"
        assert "listed" in [item["metadata"]["name"] for item in stored["items"]]


def test_a_refusal_is_in_upstreams_words(api: Live) -> None:
    refused = api.request("POST", V2, body("bad", minReplicas=9))
    assert refused.json()["message"] == (
        'HorizontalPodAutoscaler.autoscaling "bad" is invalid: spec.maxReplicas: Invalid value: '
        "5: must be greater than or equal to `minReplicas`"
    )


# --- kubectl


@pytest.fixture
def deployed(kubectl: Kubectl) -> Kubectl:
    kubectl("create", "deployment", "web", "--image=nginx:1.25")
    return kubectl


def test_kubectl_autoscale_get_and_describe(deployed: Kubectl) -> None:
    output = deployed("autoscale", "deployment", "web", "--min=2", "--max=5", "--cpu-percent=70")
    assert output.strip() == "horizontalpodautoscaler.autoscaling/web autoscaled"
    title, line = deployed("get", "hpa").splitlines()
    assert title.split() == [
        "NAME", "REFERENCE", "TARGETS", "MINPODS", "MAXPODS", "REPLICAS", "AGE",
    ]  # fmt: skip
    assert line.split()[:7] == ["web", "Deployment/web", "cpu:", "<unknown>/70%", "2", "5", "0"]
    described = deployed("describe", "hpa", "web")
    for text in ("Reference:", "Deployment/web", "Min replicas:", "Max replicas:", "/ 70%"):
        assert text in described
    assert "horizontalpodautoscaler.autoscaling/web" in deployed("get", "all")
    old = json.loads(deployed("get", f"{PLURAL}.v1.autoscaling", "web", "-o", "json"))
    assert old["spec"]["targetCPUUtilizationPercentage"] == 70


def test_kubectl_explains_edits_and_deletes(deployed: Kubectl) -> None:
    deployed("autoscale", "deployment", "web", "--max=5")
    assert "stabilizationWindowSeconds" in deployed("explain", "hpa.spec.behavior.scaleDown")
    old = deployed("explain", "hpa.spec", "--api-version=autoscaling/v1")
    assert "targetCPUUtilizationPercentage" in old
    deployed("patch", "hpa", "web", "-p", '{"spec":{"maxReplicas":8}}')
    assert deployed("get", "hpa", "web", "-o", "jsonpath={.spec.maxReplicas}") == "8"
    deployed("delete", "hpa", "web")


def test_kubectl_applies_an_autoscaler_in_either_version(deployed: Kubectl) -> None:
    kind = {"kind": "HorizontalPodAutoscaler"}
    for version in ("v1", "v2"):
        manifest = {**body(f"web-{version}"), **kind, "apiVersion": f"autoscaling/{version}"}
        for server_side in ("false", "true"):
            deployed("apply", f"--server-side={server_side}", "--force-conflicts=" + server_side,
                     "-f", "-", stdin=manifest)  # fmt: skip
        shown = deployed("get", "hpa", f"web-{version}", "-o", "json", "--show-managed-fields")
        stored = json.loads(shown)
        assert "Apply" in {entry["operation"] for entry in stored["metadata"]["managedFields"]}
