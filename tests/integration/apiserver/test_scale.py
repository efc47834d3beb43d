"""The scale subresource over HTTP."""

from __future__ import annotations

from typing import Any

import pytest

from tests.integration.apiserver.manifests import replica_set
from tests.integration.apiserver.serving import Live

APPS = "/apis/apps/v1/namespaces/default"
SETS = f"{APPS}/replicasets"
APPLY = {"content-type": "application/apply-patch+yaml"}


def deployment(name: str, replicas: int = 1) -> dict[str, Any]:
    body = replica_set(name, replicas)
    return body | {"kind": "Deployment"}


def scale_to(replicas: int, **metadata: str) -> dict[str, Any]:
    return {"metadata": metadata, "spec": {"replicas": replicas}}


def test_deployments_and_replica_sets_show_their_scale(api: Live) -> None:
    api.create(f"{APPS}/deployments", deployment("sc-deploy", 3))
    stored = api.get(f"{APPS}/deployments/sc-deploy/scale")
    assert (stored["kind"], stored["apiVersion"]) == ("Scale", "autoscaling/v1")
    assert stored["spec"] == {"replicas": 3}
    assert stored["status"] == {"replicas": 0, "selector": "app=sc-deploy"}
    assert stored["metadata"]["uid"]


def test_a_put_scales_and_is_owned_under_its_subresource(api: Live) -> None:
    api.create(SETS, replica_set("sc-put", 1), fieldManager="maker")
    response = api.request(
        "PUT", f"{SETS}/sc-put/scale", scale_to(4), params={"fieldManager": "hpa"}
    )
    assert response.json()["spec"]["replicas"] == 4
    owners = {m["manager"]: m for m in api.get(f"{SETS}/sc-put")["metadata"]["managedFields"]}
    assert owners["hpa"]["subresource"] == "scale"
    assert owners["hpa"]["fieldsV1"] == {"f:spec": {"f:replicas": {}}}
    assert "f:replicas" not in owners["maker"]["fieldsV1"]["f:spec"]


@pytest.mark.parametrize("stale", [{"resourceVersion": "1"}, {"uid": "other"}])
def test_a_put_that_names_another_object_conflicts(api: Live, stale: dict[str, str]) -> None:
    name = f"sc-stale-{len(next(iter(stale)))}"
    api.create(SETS, replica_set(name, 1))
    refused = api.request("PUT", f"{SETS}/{name}/scale", scale_to(2, **stale))
    assert (refused.status_code, refused.json()["reason"]) == (409, "Conflict")


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        ("json", [{"op": "replace", "path": "/spec/replicas", "value": 6}]),
        ("merge", {"spec": {"replicas": 6}}),
        ("strategic", {"spec": {"replicas": 6}}),
    ],
)
def test_every_patch_scales(api: Live, kind: str, body: Any) -> None:
    api.create(SETS, replica_set(f"sc-{kind}", 1))
    assert api.patch(f"{SETS}/sc-{kind}/scale", body, kind).json()["spec"]["replicas"] == 6


def test_an_apply_of_a_scale_conflicts_with_who_owns_the_replicas(api: Live) -> None:
    api.create(SETS, replica_set("sc-apply", 1), fieldManager="maker")
    body = {"apiVersion": "autoscaling/v1", "kind": "Scale"} | scale_to(3)
    where, who = f"{SETS}/sc-apply/scale", {"fieldManager": "hpa"}
    refused = api.client.patch(where, json=body, params=who, headers=APPLY)
    assert refused.status_code == 409
    assert 'conflict with "maker" using apps/v1: .spec.replicas' in refused.json()["message"]
    taken = api.client.patch(where, json=body, params=who | {"force": "true"}, headers=APPLY)
    assert taken.json()["spec"]["replicas"] == 3
    owners = api.get(f"{SETS}/sc-apply")["metadata"]["managedFields"]
    mine = next(entry for entry in owners if entry["manager"] == "hpa")
    assert (mine["operation"], mine["subresource"]) == ("Apply", "scale")


def test_what_cannot_be_a_scale_is_refused(api: Live) -> None:
    api.create(SETS, replica_set("sc-bad", 1))
    negative = api.request("PUT", f"{SETS}/sc-bad/scale", scale_to(-1)).json()
    assert negative["message"] == (
        'Scale.autoscaling "sc-bad" is invalid: spec.replicas: Invalid value: -1: '
        "must be greater than or equal to 0"
    )
    assert api.client.get(f"{SETS}/sc-none/scale").status_code == 404
    assert api.client.get("/api/v1/namespaces/default/pods/x/scale").status_code == 404
    assert api.client.delete(f"{SETS}/sc-bad/scale").status_code == 405


def test_a_dry_run_scales_nothing(api: Live) -> None:
    api.create(SETS, replica_set("sc-dry", 1))
    response = api.request("PUT", f"{SETS}/sc-dry/scale", scale_to(9), params={"dryRun": "All"})
    assert response.json()["spec"]["replicas"] == 9
    assert api.get(f"{SETS}/sc-dry/scale")["spec"]["replicas"] == 1


def test_a_scale_prints_as_a_table(api: Live) -> None:
    api.create(SETS, replica_set("sc-table", 2))
    accept = {"accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}
    table = api.client.get(f"{SETS}/sc-table/scale", headers=accept).json()
    assert table["kind"] == "Table"
    assert table["rows"][0]["cells"][:3] == ["sc-table", 2, 0]


def test_discovery_lists_scale_for_every_kind_that_has_it(api: Live) -> None:
    names = {entry["name"]: entry for entry in api.get("/apis/apps/v1")["resources"]}
    for kind in ("replicasets", "deployments"):
        assert names[f"{kind}/scale"]["group"] == "autoscaling"
