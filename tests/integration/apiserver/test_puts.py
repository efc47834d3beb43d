"""PUTs that create, PUTs that need a resourceVersion, values of wrong types, collections."""

from __future__ import annotations

from typing import Any

import pytest

from tests.integration.apiserver.manifests import pod, replica_set
from tests.integration.apiserver.serving import Live

PODS = "/api/v1/namespaces/default/pods"
SETS = "/apis/apps/v1/namespaces/default/replicasets"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/default/leases"
ENDPOINTS = "/api/v1/namespaces/default/endpoints"


def test_a_put_creates_where_upstream_allows_it(api: Live) -> None:
    response = api.request("PUT", f"{ENDPOINTS}/pu-new", {"metadata": {"name": "pu-new"}})
    assert response.status_code == 201
    again = api.request("PUT", f"{ENDPOINTS}/pu-new", {"metadata": {"labels": {"a": "b"}}})
    assert again.status_code == 200
    dry = {"dryRun": "All"}
    assert api.request("PUT", f"{ENDPOINTS}/pu-dry", {}, params=dry).status_code == 201
    assert api.client.get(f"{ENDPOINTS}/pu-dry").status_code == 404


def test_a_put_of_one_certain_object_does_not_create_another(api: Live) -> None:
    body = {"metadata": {"name": "pu-uid", "uid": "5e0b42a1-0000-4000-a000-000000000000"}}
    refused = api.request("PUT", f"{ENDPOINTS}/pu-uid", body)
    assert (refused.status_code, refused.json()["reason"]) == (409, "Conflict")


@pytest.mark.parametrize("path", [PODS, SETS, "/api/v1/namespaces/default/configmaps"])
def test_other_kinds_are_not_created_by_a_put(api: Live, path: str) -> None:
    refused = api.request("PUT", f"{path}/pu-none", pod("pu-none") if path == PODS else {})
    assert refused.status_code == 404


def test_some_kinds_must_say_which_version_they_replace(api: Live) -> None:
    created = api.create(LEASES, {"metadata": {"name": "pu-lease"}})
    body = {"metadata": {"name": "pu-lease"}, "spec": {"holderIdentity": "me"}}
    refused = api.request("PUT", f"{LEASES}/pu-lease", body)
    assert refused.status_code == 422
    assert (
        "metadata.resourceVersion: Invalid value: 0x0: must be specified for an update"
        in (refused.json()["message"])
    )
    body["metadata"]["resourceVersion"] = created["metadata"]["resourceVersion"]
    assert api.request("PUT", f"{LEASES}/pu-lease", body).status_code == 200


def test_a_pod_is_replaced_by_the_manifest_that_created_it(api: Live) -> None:
    body = pod("pu-again")
    body["spec"] |= {"serviceAccountName": "default", "automountServiceAccountToken": False}
    created = api.create(PODS, body)
    same = api.request("PUT", f"{PODS}/pu-again", body)
    assert same.json() == created  # what admission adds is no change
    body["metadata"]["labels"] = {"a": "b"}
    replaced = api.request("PUT", f"{PODS}/pu-again", body)
    assert replaced.status_code == 200, replaced.text
    assert replaced.json()["spec"] == created["spec"]
    assert replaced.json()["metadata"]["labels"] == {"a": "b"}


def wrong(path: str, value: Any) -> dict[str, Any]:
    """Returns a ReplicaSet with this value at the path."""
    body = replica_set("pu-wrong")
    at: Any = body
    *steps, last = path.split("/")
    for step in steps:
        at = at[int(step)] if step.isdecimal() else at[step]
    at[last] = value
    return body


@pytest.mark.parametrize(
    ("path", "value", "text"),
    [
        (
            "spec/replicas",
            "three",
            "cannot unmarshal string into Go struct field ReplicaSetSpec.spec.replicas "
            "of type int32",
        ),
        (
            "spec/template/spec/containers/0/image",
            5,
            "cannot unmarshal number into Go struct field "
            "Container.spec.template.spec.containers.image of type string",
        ),
        (
            "spec/template/spec/containers",
            "x",
            "cannot unmarshal string into Go struct field "
            "PodSpec.spec.template.spec.containers of type []v1.Container",
        ),
        (
            "metadata/labels",
            {"a": 1},
            "cannot unmarshal number into Go struct field ObjectMeta.metadata.labels "
            "of type string",
        ),
        (
            "spec/selector",
            [],
            "cannot unmarshal array into Go struct field ReplicaSetSpec.spec.selector "
            "of type v1.LabelSelector",
        ),
    ],
)
def test_a_value_of_a_wrong_type_is_a_bad_request(
    api: Live, path: str, value: Any, text: str
) -> None:
    refused = api.request("POST", SETS, wrong(path, value))
    assert (refused.status_code, refused.json()["reason"]) == (400, "BadRequest")
    assert refused.json()["message"] == (
        f'ReplicaSet in version "v1" cannot be handled as a ReplicaSet: json: {text}'
    )


@pytest.mark.parametrize("kind", ["merge", "strategic"])
def test_a_patch_with_a_value_of_a_wrong_type_is_invalid(api: Live, kind: str) -> None:
    api.create(SETS, replica_set(f"pu-{kind}"))
    refused = api.patch(f"{SETS}/pu-{kind}", {"spec": {"replicas": "x"}}, kind)
    assert refused.status_code == 422
    assert "patch: Invalid value" in refused.json()["message"]
    assert "cannot unmarshal string" in refused.json()["message"]


def test_an_apply_with_a_value_of_a_wrong_type_is_refused_as_upstream(api: Live) -> None:
    refused = api.client.patch(
        f"{SETS}/pu-wrong", json=wrong("spec/replicas", "x"), params={"fieldManager": "me"},
        headers={"content-type": "application/apply-patch+yaml"},
    )  # fmt: skip
    assert refused.status_code == 500
    assert "failed to create typed patch object" in refused.json()["message"]


def test_a_collection_is_deleted_with_its_options(api: Live) -> None:
    for n in range(3):
        api.create(SETS, replica_set(f"pu-c{n}"))
    selected = {"labelSelector": "app in (pu-c0,pu-c1)"}
    api.request("DELETE", SETS, {"dryRun": ["All"]}, params=selected)
    assert api.client.get(f"{SETS}/pu-c0").status_code == 200
    api.request("DELETE", SETS, {"propagationPolicy": "Foreground"}, params=selected)
    assert api.get(f"{SETS}/pu-c1")["metadata"]["finalizers"] == ["foregroundDeletion"]
    assert "deletionTimestamp" not in api.get(f"{SETS}/pu-c2")["metadata"]


def test_namespaces_are_not_deleted_together(api: Live) -> None:
    assert api.client.delete("/api/v1/namespaces").status_code == 405
    kinds = {entry["name"]: entry["verbs"] for entry in api.get("/api/v1")["resources"]}
    assert "deletecollection" not in kinds["namespaces"]
    assert "deletecollection" in kinds["pods"]


def test_pods_services_and_accounts_answer_a_delete_with_themselves(api: Live) -> None:
    accounts = "/api/v1/namespaces/default/serviceaccounts"
    api.create(accounts, {"metadata": {"name": "pu-sa"}})
    assert api.client.delete(f"{accounts}/pu-sa").json()["kind"] == "ServiceAccount"
    maps = "/api/v1/namespaces/default/configmaps"
    api.create(maps, {"metadata": {"name": "pu-cm"}})
    assert api.client.delete(f"{maps}/pu-cm").json()["kind"] == "Status"
