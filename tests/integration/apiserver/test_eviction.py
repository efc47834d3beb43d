"""Evictions over HTTP, with and without disruption budgets."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest

from tests.integration.apiserver.manifests import pod
from tests.integration.apiserver.serving import Live

READY = [{"type": "Ready", "status": "True"}]


@pytest.fixture
def where(api: Live, request: pytest.FixtureRequest) -> str:
    """Returns the path of a namespace that only this test uses."""
    name = f"ev-{abs(hash(request.node.name)) % 10**8}"
    api.create("/api/v1/namespaces", {"metadata": {"name": name}})
    return f"/api/v1/namespaces/{name}"


def create_running_pod(api: Live, where: str, name: str, *, ready: bool = True) -> None:
    """Creates a pod that runs on a node."""
    body = pod(name, labels={"app": "x"})
    body["spec"]["nodeName"] = "n1"
    created = api.create(f"{where}/pods", body)
    created["status"] = {"phase": "Running", "conditions": READY if ready else []}
    assert api.request("PUT", f"{where}/pods/{name}/status", created).status_code == 200


def budget(api: Live, where: str, name: str = "pdb", spec: Any = None, **status: Any) -> str:
    path = f"{where.replace('/api/v1', '/apis/policy/v1')}/poddisruptionbudgets"
    selector = {"selector": {"matchLabels": {"app": "x"}}, "minAvailable": 1}
    created = api.create(path, {"metadata": {"name": name}, "spec": selector | (spec or {})})
    created["status"] = {"observedGeneration": 1, "disruptionsAllowed": 0} | status
    assert api.request("PUT", f"{path}/{name}/status", created).status_code == 200
    return f"{path}/{name}"


def evict(api: Live, where: str, name: str, **options: Any) -> httpx.Response:
    body: dict[str, Any] = {"apiVersion": "policy/v1", "kind": "Eviction"}
    body["metadata"] = {"name": name}
    if options:
        body["deleteOptions"] = options
    return api.request("POST", f"{where}/pods/{name}/eviction", body)


def is_going(api: Live, where: str, name: str) -> bool:
    response = api.client.get(f"{where}/pods/{name}")
    return response.status_code == 404 or "deletionTimestamp" in response.json()["metadata"]


def test_without_a_budget_the_pod_goes_and_says_why(api: Live, where: str) -> None:
    create_running_pod(api, where, "p")
    assert evict(api, where, "p").status_code == 201
    conditions = api.get(f"{where}/pods/p")["status"]["conditions"]
    target = next(c for c in conditions if c["type"] == "DisruptionTarget")
    assert (target["status"], target["reason"]) == ("True", "EvictionByEvictionAPI")
    assert is_going(api, where, "p")


def test_a_spent_budget_refuses_with_its_own_words(api: Live, where: str) -> None:
    create_running_pod(api, where, "p")
    budget(api, where, desiredHealthy=2, currentHealthy=1)
    refused = evict(api, where, "p")
    body = refused.json()
    assert (refused.status_code, body["reason"]) == (429, "TooManyRequests")
    assert body["message"] == "Cannot evict pod as it would violate the pod's disruption budget."
    assert body["details"]["causes"] == [
        {
            "reason": "DisruptionBudget",
            "message": "The disruption budget pdb needs 2 healthy pods and has 1 currently",
        }
    ]
    assert not is_going(api, where, "p")


def test_an_eviction_takes_one_disruption_and_names_the_pod(api: Live, where: str) -> None:
    create_running_pod(api, where, "p")
    path = budget(api, where, disruptionsAllowed=1, desiredHealthy=1, currentHealthy=2)
    assert evict(api, where, "p").status_code == 201
    status = api.get(path)["status"]
    assert status["disruptionsAllowed"] == 0
    assert list(status["disruptedPods"]) == ["p"]
    (condition,) = status["conditions"]
    assert (condition["type"], condition["status"]) == ("DisruptionAllowed", "False")


def test_many_evictions_at_once_never_overdraw_a_budget(api: Live, where: str) -> None:
    names = [f"p{n}" for n in range(8)]
    for name in names:
        create_running_pod(api, where, name)
    path = budget(api, where, disruptionsAllowed=3, desiredHealthy=5, currentHealthy=8)
    with ThreadPoolExecutor(8) as pool:
        codes = list(pool.map(lambda name: evict(api, where, name).status_code, names))
    assert sorted(codes) == [201] * 3 + [429] * 5
    assert len(api.get(path)["status"]["disruptedPods"]) == 3


def test_two_budgets_for_one_pod_are_an_error(api: Live, where: str) -> None:
    create_running_pod(api, where, "p")
    budget(api, where, "one", disruptionsAllowed=5)
    budget(api, where, "two", disruptionsAllowed=5)
    refused = evict(api, where, "p")
    assert refused.status_code == 500
    assert "more than one PodDisruptionBudget" in refused.json()["message"]


def test_a_budget_that_its_controller_has_not_seen_says_come_back(api: Live, where: str) -> None:
    create_running_pod(api, where, "p")
    budget(api, where, observedGeneration=0, disruptionsAllowed=5)
    refused = evict(api, where, "p")
    assert refused.status_code == 429
    assert refused.headers["retry-after"] == "10"
    assert "still being processed" in refused.json()["details"]["causes"][0]["message"]


@pytest.mark.parametrize(
    ("policy", "healthy", "code"),
    [(None, 1, 429), (None, 2, 201), ("IfHealthyBudget", 1, 429), ("AlwaysAllow", 1, 201)],
)
def test_unready_pods_go_as_the_policy_says(
    api: Live, where: str, policy: str | None, healthy: int, code: int
) -> None:
    create_running_pod(api, where, "p", ready=False)
    spec = {"unhealthyPodEvictionPolicy": policy} if policy else {}
    path = budget(api, where, spec=spec, desiredHealthy=2, currentHealthy=healthy)
    assert evict(api, where, "p").status_code == code
    assert "disruptedPods" not in api.get(path)["status"]


def test_pending_and_ended_pods_need_no_budget(api: Live, where: str) -> None:
    budget(api, where)
    api.create(f"{where}/pods", pod("pending", labels={"app": "x"}))
    create_running_pod(api, where, "ended")
    ended = api.get(f"{where}/pods/ended") | {"status": {"phase": "Failed"}}
    api.request("PUT", f"{where}/pods/ended/status", ended)
    for name in ("pending", "ended"):
        assert evict(api, where, name).status_code == 201
        assert is_going(api, where, name)


def test_a_dry_run_checks_the_budget_and_changes_nothing(api: Live, where: str) -> None:
    create_running_pod(api, where, "p")
    path = budget(api, where, disruptionsAllowed=1)
    assert evict(api, where, "p", dryRun=["All"]).status_code == 201
    assert not is_going(api, where, "p")
    assert api.get(path)["status"]["disruptionsAllowed"] == 1


def test_preconditions_count_and_what_is_not_there_is_not_found(api: Live, where: str) -> None:
    create_running_pod(api, where, "p")
    assert evict(api, where, "p", preconditions={"uid": "other"}).status_code == 409
    assert not is_going(api, where, "p")
    assert evict(api, where, "none").status_code == 404
