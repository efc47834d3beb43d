"""The FlowSchemas and PriorityLevelConfigurations that every cluster has."""

from __future__ import annotations

from kcm.apiserver.bootstrap import priority_levels
from kcm.apiserver.bootstrap.cluster import ClusterBootstrap
from tests.integration.apiserver.kubectl import Kubectl
from tests.integration.apiserver.serving import Live

GROUP = "/apis/flowcontrol.apiserver.k8s.io/v1"
LEVELS, SCHEMAS = f"{GROUP}/prioritylevelconfigurations", f"{GROUP}/flowschemas"


def names(api: Live, path: str) -> set[str]:
    return {item["metadata"]["name"] for item in api.get(path)["items"]}


def test_kubectl_shows_them(kubectl: Kubectl) -> None:
    lines = kubectl("get", "flowschemas").splitlines()
    assert ["catch-all", "catch-all", "10000", "ByUser"] in [line.split()[:4] for line in lines]
    lines = kubectl("get", "prioritylevelconfigurations").splitlines()
    assert ["system", "Limited", "30", "64", "6", "50"] in [line.split()[:6] for line in lines]


def test_what_was_deleted_or_changed_is_corrected(api: Live) -> None:
    before = names(api, LEVELS), names(api, SCHEMAS)
    assert (len(before[0]), len(before[1])) == (8, 13)
    api.request("DELETE", f"{SCHEMAS}/catch-all")
    api.request("DELETE", f"{LEVELS}/workload-low")
    api.patch(f"{LEVELS}/system", {"spec": {"limited": {"nominalConcurrencyShares": 99}}})
    own = {"metadata": {"annotations": {"apf.kubernetes.io/autoupdate-spec": "false"}}}
    api.patch(f"{LEVELS}/node-high", own)
    api.patch(f"{LEVELS}/node-high", {"spec": {"limited": {"nominalConcurrencyShares": 99}}})
    priority_levels.ensure(api.store)
    assert (names(api, LEVELS), names(api, SCHEMAS)) == before
    shares = {
        name: api.get(f"{LEVELS}/{name}")["spec"]["limited"]["nominalConcurrencyShares"]
        for name in ("system", "node-high")
    }
    assert shares == {"system": 30, "node-high": 99}


def test_one_that_cannot_be_read_is_replaced(api: Live) -> None:
    io = api.store.io
    key = io.keys.object("flowschemas.flowcontrol.apiserver.k8s.io", "exempt")
    io.execute("HSET", key, "json", b"{")
    priority_levels.ensure(api.store)
    assert api.get(f"{SCHEMAS}/exempt")["spec"]["matchingPrecedence"] == 1


def test_each_response_says_which_schema_and_level_it_had(api: Live) -> None:
    schemas, levels = (
        {item["metadata"]["name"]: item["metadata"]["uid"] for item in api.get(path)["items"]}
        for path in (SCHEMAS, LEVELS)
    )
    impersonate = {"impersonate-user": "jane", "impersonate-group": "system:authenticated"}
    for path, headers, name in (
        ("/apis", {}, "exempt"),
        ("/api/v1/namespaces/default", {}, "exempt"),
        ("/api/v1/namespaces/nowhere", {}, "exempt"),
        ("/apis", impersonate, "global-default"),
        ("/version", impersonate, "global-default"),
    ):
        response = api.client.get(path, headers=headers)
        assert response.headers["x-kubernetes-pf-flowschema-uid"] == schemas[name]
        assert response.headers["x-kubernetes-pf-prioritylevel-uid"] == levels[name]


def test_a_schema_whose_level_is_missing_says_so(api: Live, kubectl: Kubectl) -> None:
    bootstrap = ClusterBootstrap(api.store)
    bootstrap.turn(0.0)
    spec = {"priorityLevelConfiguration": {"name": "nowhere"}, "matchingPrecedence": 77}
    api.request("POST", SCHEMAS, {"metadata": {"name": "lost"}, "spec": spec})
    bootstrap.turn(0.0)
    lines = [line.split() for line in kubectl("get", "flowschemas").splitlines()]
    assert [line[-1] for line in lines if line[0] == "lost"] == ["True"]
    assert [line[-1] for line in lines if line[0] == "exempt"] == ["False"]
    api.request("DELETE", f"{SCHEMAS}/lost")
