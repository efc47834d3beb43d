"""Server-side apply over HTTP."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from kcm.api import codec
from kcm.api.scheme import BUILT_IN
from tests.integration.apiserver.manifests import pod, replica_set
from tests.integration.apiserver.serving import Live

SETS = "/apis/apps/v1/namespaces/default/replicasets"
PODS = "/api/v1/namespaces/default/pods"


def apply(
    api: Live, path: str, body: dict[str, Any], manager: str = "me", **params: Any
) -> httpx.Response:
    return api.client.patch(
        path, json=body, params={"fieldManager": manager} | params,
        headers={"content-type": "application/apply-patch+yaml"},
    )  # fmt: skip


def managers(body: dict[str, Any]) -> dict[str, Any]:
    return {
        f"{entry['manager']}/{entry['operation']}": entry["fieldsV1"]
        for entry in body["metadata"].get("managedFields", ())
    }


def test_the_first_apply_creates_and_owns_what_it_names(api: Live) -> None:
    response = apply(api, f"{SETS}/a-first", replica_set("a-first"))
    assert response.status_code == 201
    fields = managers(response.json())["me/Apply"]
    container = fields["f:spec"]["f:template"]["f:spec"]["f:containers"]['k:{"name":"c"}']
    assert container["f:image"] == {}
    assert container["f:ports"] == {
        'k:{"containerPort":80,"protocol":"TCP"}': {".": {}, "f:containerPort": {}}
    }
    assert "f:imagePullPolicy" not in container


def test_an_apply_that_changes_nothing_writes_nothing(api: Live) -> None:
    first = apply(api, f"{SETS}/a-same", replica_set("a-same")).json()
    again = apply(api, f"{SETS}/a-same", replica_set("a-same"))
    assert again.status_code == 200
    assert again.json() == first


def test_what_the_applier_no_longer_names_goes(api: Live) -> None:
    apply(api, f"{SETS}/a-drop", replica_set("a-drop"))
    slim = replica_set("a-drop")
    container = slim["spec"]["template"]["spec"]["containers"][0]
    del container["env"]
    container["ports"] = [{"containerPort": 81}]
    updated = apply(api, f"{SETS}/a-drop", slim).json()
    left = updated["spec"]["template"]["spec"]["containers"][0]
    assert "env" not in left
    assert [port["containerPort"] for port in left["ports"]] == [81]


def test_two_managers_share_a_list_and_fight_over_a_value(api: Live) -> None:
    apply(api, f"{PODS}/a-two", pod("a-two", labels={"mine": "1"}))
    labels = {"theirs": "1"}
    other = {"apiVersion": "v1", "kind": "Pod", "metadata": {"labels": labels}}
    both = apply(api, f"{PODS}/a-two", other, "you").json()
    assert both["metadata"]["labels"] == {"mine": "1", "theirs": "1"}
    labels["mine"] = "2"
    refused = apply(api, f"{PODS}/a-two", other, "you")
    assert refused.status_code == 409
    body = refused.json()
    assert body["message"] == (
        'Apply failed with 1 conflict: conflict with "me": .metadata.labels.mine'
    )
    assert body["details"]["causes"] == [
        {
            "reason": "FieldManagerConflict",
            "message": 'conflict with "me"',
            "field": ".metadata.labels.mine",
        }
    ]
    taken = apply(api, f"{PODS}/a-two", other, "you", force="true").json()
    assert taken["metadata"]["labels"]["mine"] == "2"
    assert "f:labels" not in managers(taken)["me/Apply"].get("f:metadata", {})


def test_what_somebody_else_owns_too_stays(api: Live) -> None:
    apply(api, f"{PODS}/a-shared", pod("a-shared", labels={"x": "1"}))
    other = {"apiVersion": "v1", "kind": "Pod", "metadata": {"labels": {"x": "1"}}}
    assert apply(api, f"{PODS}/a-shared", other, "you").status_code == 200
    updated = apply(api, f"{PODS}/a-shared", pod("a-shared")).json()
    assert updated["metadata"]["labels"] == {"x": "1"}


def test_an_update_takes_what_it_changes(api: Live) -> None:
    apply(api, f"{SETS}/a-update", replica_set("a-update", 2))
    patched = api.patch(f"{SETS}/a-update", {"spec": {"replicas": 5}}, fieldManager="scaler").json()
    assert managers(patched)["scaler/Update"] == {"f:spec": {"f:replicas": {}}}
    refused = apply(api, f"{SETS}/a-update", replica_set("a-update", 2))
    assert 'conflict with "scaler" using apps/v1: .spec.replicas' in refused.json()["message"]


def test_objects_from_before_are_owned_by_nobody_in_particular(api: Live) -> None:
    replica_set_body = replica_set("a-before", 2)
    replica_set_body["metadata"]["namespace"] = "default"
    api.store.create(
        codec.decode(replica_set_body, BUILT_IN)
    )  # as controllers do: without managers
    refused = apply(api, f"{SETS}/a-before", replica_set("a-before", 3))
    assert 'conflict with "before-first-apply"' in refused.json()["message"]
    same = apply(api, f"{SETS}/a-before", replica_set("a-before", 2)).json()
    assert {"before-first-apply/Update", "me/Apply"} == set(managers(same))


def test_an_update_without_managed_fields_keeps_them(api: Live) -> None:
    updated = apply(api, f"{PODS}/a-keep", pod("a-keep")).json()
    del updated["metadata"]["managedFields"]
    updated["metadata"]["labels"] = {"new": "1"}
    kept = api.request("PUT", f"{PODS}/a-keep", updated, params={"fieldManager": "other"}).json()
    assert {"me/Apply", "other/Update"} == set(managers(kept))


def test_a_dry_run_creates_nothing(api: Live) -> None:
    assert apply(api, f"{PODS}/a-dry", pod("a-dry"), dryRun="All").status_code == 201
    assert api.client.get(f"{PODS}/a-dry").status_code == 404


@pytest.mark.parametrize(
    ("body", "params"),
    [
        ({"kind": "Pod", "apiVersion": "v1"}, {"fieldManager": ""}),
        ({"kind": "Node", "apiVersion": "v1"}, {}),
        ({"metadata": {"name": "other"}}, {}),
        ({"metadata": {"managedFields": [{"manager": "x"}]}}, {}),
    ],
)
def test_an_apply_that_makes_no_sense_is_refused(
    api: Live, body: dict[str, Any], params: dict[str, str]
) -> None:
    assert apply(api, f"{PODS}/a-bad", body, **params).status_code == 400


def test_force_is_for_applies_only(api: Live) -> None:
    api.create(PODS, pod("a-force"))
    assert api.patch(f"{PODS}/a-force", {}, force="true").status_code == 400
