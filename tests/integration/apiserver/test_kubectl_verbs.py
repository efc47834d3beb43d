"""kubectl, oldest and newest: scales, drains, budgets, applies on the server, wrong types."""

from __future__ import annotations

import json
from typing import Any

from kcm.store.merge import LAST_APPLIED
from tests.integration.apiserver.kubectl import Kubectl
from tests.integration.apiserver.manifests import pod, replica_set
from tests.integration.apiserver.serving import Live


def deployment(name: str, replicas: int = 2, **strategy: Any) -> dict[str, Any]:
    body = replica_set(name, replicas) | {"kind": "Deployment"}
    if strategy:
        body["spec"]["strategy"] = strategy
    return body


def read(kubectl: Kubectl, *what: str) -> dict[str, Any]:
    stored: dict[str, Any] = json.loads(
        kubectl("get", *what, "-o", "json", "--show-managed-fields")
    )
    return stored


def managers(body: dict[str, Any]) -> set[tuple[str, str]]:
    return {(entry["manager"], entry["operation"]) for entry in body["metadata"]["managedFields"]}


def test_scale_a_deployment(kubectl: Kubectl) -> None:
    kubectl("create", "-f", "-", stdin=deployment("web"))
    assert kubectl("scale", "deployment", "web", "--replicas=4").endswith("scaled\n")
    assert read(kubectl, "deployment", "web")["spec"]["replicas"] == 4
    words = kubectl.run_failing(
        "scale", "deployment", "web", "--current-replicas=9", "--replicas=1"
    )
    assert "Expected replicas to be 9, was 4" in words
    kubectl("patch", "deployment", "web", "--subresource=scale", "--type=merge", "-p",
            '{"spec":{"replicas":6}}')  # fmt: skip
    header, row = kubectl("get", "deployment", "web", "--subresource=scale").splitlines()
    assert header.split() == ["NAME", "DESIRED", "AVAILABLE", "AGE"]
    assert row.split()[:2] == ["web", "6"]


def test_drain_on_paper_and_for_real(api: Live, kubectl: Kubectl) -> None:
    node = f"node-{kubectl.namespace}"
    api.create("/api/v1/nodes", {"metadata": {"name": node}})
    running = pod("p1", labels={"app": "x"})
    running["spec"]["nodeName"] = node
    kubectl("create", "-f", "-", stdin=running)
    ready = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
    kubectl("patch", "pod", "p1", "--subresource=status", "--type=merge", "-p",
            json.dumps({"status": ready}))  # fmt: skip
    out = kubectl("drain", node, "--dry-run=client", "--force")
    assert "p1" in out
    assert "unschedulable" not in read(kubectl, "node", node)["spec"]
    spec = {"minAvailable": 1, "selector": {"matchLabels": {"app": "x"}}}
    budget = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "spec": spec}
    kubectl("create", "-f", "-", stdin=budget | {"metadata": {"name": "pdb"}})
    spent = {"status": {"observedGeneration": 1, "desiredHealthy": 1, "currentHealthy": 1}}
    kubectl("patch", "pdb", "pdb", "--subresource=status", "--type=merge", "-p", json.dumps(spent))
    refused = kubectl.run_failing("drain", node, "--force", "--timeout=1s")
    assert "Cannot evict pod as it would violate the pod's disruption budget." in refused
    spent["status"]["disruptionsAllowed"] = 1
    kubectl("patch", "pdb", "pdb", "--subresource=status", "--type=merge", "-p", json.dumps(spent))
    kubectl.run("drain", node, "--force", "--timeout=1s", "--grace-period=1")
    assert read(kubectl, "pod", "p1")["metadata"]["deletionTimestamp"]
    assert read(kubectl, "node", node)["spec"]["unschedulable"] is True


def test_managers_from_the_first_create_on(kubectl: Kubectl) -> None:
    kubectl("create", "-f", "-", stdin=deployment("web"))
    assert managers(read(kubectl, "deployment", "web")) == {("kubectl-create", "Update")}
    kubectl("label", "deployment", "web", "a=b")
    kubectl("scale", "deployment", "web", "--replicas=3")
    names = managers(read(kubectl, "deployment", "web"))
    assert ("kubectl-label", "Update") in names
    words = kubectl.run_failing("apply", "--server-side", "-f", "-", stdin=deployment("web", 5))
    assert "conflict with" in words
    assert "before-first-apply" not in words


def test_an_apply_on_the_client_moves_to_the_server(kubectl: Kubectl) -> None:
    kubectl("apply", "-f", "-", stdin=deployment("web", 2))
    slim = deployment("web", 3)
    del slim["spec"]["template"]["spec"]["containers"][0]["env"]
    kubectl("apply", "--server-side", "-f", "-", stdin=slim)
    deployment_body = read(kubectl, "deployment", "web")
    names = managers(deployment_body)
    assert ("kubectl", "Apply") in names
    assert ("kubectl-client-side-apply", "Update") not in names
    assert deployment_body["spec"]["replicas"] == 3
    assert "env" not in deployment_body["spec"]["template"]["spec"]["containers"][0]
    applied = json.loads(deployment_body["metadata"]["annotations"][LAST_APPLIED])
    assert applied["spec"]["replicas"] == 3
    kubectl("apply", "-f", "-", stdin=deployment("web", 4))  # and back again
    assert read(kubectl, "deployment", "web")["spec"]["replicas"] == 4


def test_diff_on_the_server(kubectl: Kubectl) -> None:
    kubectl("apply", "--server-side", "-f", "-", stdin=deployment("web"))
    same = kubectl.run("diff", "--server-side", "-f", "-", stdin=deployment("web"))
    assert same.returncode == 0, same.stdout
    done = kubectl.run("diff", "--server-side", "-f", "-", stdin=deployment("web", 7))
    assert done.returncode == 1
    assert "+  replicas: 7" in done.stdout


def test_alternatives_replace_each_other(kubectl: Kubectl) -> None:
    rolling = deployment("web", type="RollingUpdate", rollingUpdate={"maxSurge": 2})
    kubectl("apply", "-f", "-", stdin=rolling)
    kubectl("apply", "-f", "-", stdin=deployment("web", type="Recreate"))
    assert read(kubectl, "deployment", "web")["spec"]["strategy"] == {"type": "Recreate"}


def test_wrong_types_are_told_where_they_are(kubectl: Kubectl) -> None:
    wrong = deployment("web")
    wrong["spec"]["replicas"] = "three"
    words = kubectl.run_failing("create", "-f", "-", stdin=wrong)
    assert (
        'Deployment in version "v1" cannot be handled as a Deployment: json: cannot unmarshal '
        "string into Go struct field DeploymentSpec.spec.replicas of type int32"
    ) in words


def test_edit_and_all_patches_of_a_deployment(kubectl: Kubectl) -> None:
    kubectl("create", "-f", "-", stdin=deployment("web"))
    kubectl("edit", "deployment", "web", EDITOR="sed -i s/nginx:1/nginx:9/")
    kubectl("patch", "deployment", "web", "--type=json", "-p",
            '[{"op":"add","path":"/spec/paused","value":true}]')  # fmt: skip
    kubectl("patch", "deployment", "web", "--type=merge", "-p", '{"spec":{"minReadySeconds":3}}')
    kubectl("patch", "deployment", "web", "-p", '{"spec":{"revisionHistoryLimit":2}}')
    spec = read(kubectl, "deployment", "web")["spec"]
    assert (spec["paused"], spec["minReadySeconds"], spec["revisionHistoryLimit"]) == (True, 3, 2)
    assert spec["template"]["spec"]["containers"][0]["image"] == "nginx:9"


def test_logs_say_what_is_wrong(kubectl: Kubectl) -> None:
    two = pod("two")
    two["spec"]["containers"] = [{"name": n, "image": "x"} for n in ("a", "b")]
    kubectl("create", "-f", "-", stdin=two)
    assert "container z is not valid for pod two" in kubectl.run_failing("logs", "two", "-c", "z")
    assert kubectl("logs", "two", "-c", "a") == ""
    assert 'pods "none" not found' in kubectl.run_failing("logs", "none")
