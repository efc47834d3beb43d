"""Which field manager owns which fields, from an object's creation on."""

from __future__ import annotations

import json
from typing import Any

from kcm.api import codec
from kcm.api.scheme import BUILT_IN
from kcm.store.merge import LAST_APPLIED
from tests.integration.apiserver.manifests import pod, replica_set
from tests.integration.apiserver.serving import Live

SETS = "/apis/apps/v1/namespaces/default/replicasets"
PODS = "/api/v1/namespaces/default/pods"
APPLY = {"content-type": "application/apply-patch+yaml"}


def owners(body: dict[str, Any]) -> dict[tuple[str, str, str], dict[str, Any]]:
    return {
        (entry["manager"], entry["operation"], entry.get("subresource", "")): entry
        for entry in body["metadata"].get("managedFields", ())
    }


def test_a_create_owns_the_object_with_its_defaults(api: Live) -> None:
    created = api.create(PODS, pod("mf-new", labels={"a": "b"}), fieldManager="maker")
    entry = owners(created)["maker", "Update", ""]
    assert entry["apiVersion"] == "v1"
    assert entry["fieldsType"] == "FieldsV1"
    fields = entry["fieldsV1"]
    assert fields["f:metadata"] == {"f:labels": {".": {}, "f:a": {}}}
    assert fields["f:spec"]["f:restartPolicy"] == {}
    container = fields["f:spec"]["f:containers"]['k:{"name":"c"}']
    assert container["."] == container["f:imagePullPolicy"] == {}
    assert "f:status" not in fields


def test_without_a_field_manager_the_user_agent_names_it(api: Live) -> None:
    headers = {"user-agent": "tool/v1.2 (linux/amd64)"}
    body = api.client.post(PODS, json=pod("mf-agent"), headers=headers).json()
    assert ("tool", "Update", "") in owners(body)


def test_an_update_moves_what_it_changes_and_its_time_only_then(api: Live) -> None:
    created = api.create(SETS, replica_set("mf-move", 1), fieldManager="maker")
    before = owners(created)["maker", "Update", ""]
    created["spec"]["replicas"] = 7
    moved = api.request("PUT", f"{SETS}/mf-move", created, params={"fieldManager": "scaler"}).json()
    assert owners(moved)["scaler", "Update", ""]["fieldsV1"] == {"f:spec": {"f:replicas": {}}}
    after = owners(moved)["maker", "Update", ""]
    assert after["time"] == before["time"]
    again = api.request("PUT", f"{SETS}/mf-move", moved, params={"fieldManager": "other"}).json()
    assert again == moved


def test_a_status_is_owned_under_its_subresource(api: Live) -> None:
    created = api.create(PODS, pod("mf-status"), fieldManager="maker")
    created["status"] = {"phase": "Running"}
    body = api.request(
        "PUT", f"{PODS}/mf-status/status", created, params={"fieldManager": "kubelet"}
    ).json()
    entry = owners(body)["kubelet", "Update", "status"]
    assert entry["fieldsV1"] == {"f:status": {"f:phase": {}}}


def test_an_apply_of_a_status_owns_it_and_drops_what_it_no_longer_names(api: Live) -> None:
    api.create(SETS, replica_set("mf-sapply"), fieldManager="maker")
    condition = {"type": "T", "status": "True"}
    body: dict[str, Any] = {"apiVersion": "apps/v1", "kind": "ReplicaSet"}
    body["status"] = {"replicas": 1, "readyReplicas": 1, "conditions": [condition]}
    where, who = f"{SETS}/mf-sapply/status", {"fieldManager": "me"}
    updated = api.client.patch(where, json=body, params=who, headers=APPLY).json()
    assert updated["status"]["readyReplicas"] == 1
    assert "f:readyReplicas" in owners(updated)["me", "Apply", "status"]["fieldsV1"]["f:status"]
    del body["status"]["readyReplicas"]
    updated = api.client.patch(where, json=body, params=who, headers=APPLY).json()
    assert "readyReplicas" not in updated["status"]
    assert updated["status"]["conditions"] == [condition]


def test_writes_of_controllers_are_tracked_where_the_object_has_managers(api: Live) -> None:
    resource = BUILT_IN.lookup("rs")
    api.create(SETS, replica_set("mf-ctl"), fieldManager="maker")
    old: Any = api.store.get(resource, "default/mf-ctl")
    api.store.update_status(old.with_status(old.status.replace(replicas=2)))
    status = owners(api.get(f"{SETS}/mf-ctl"))["kcm", "Update", "status"]
    assert status["fieldsV1"] == {"f:status": {"f:replicas": {}}}
    bare = replica_set("mf-bare")
    bare["metadata"]["namespace"] = "default"
    api.store.create(codec.decode(bare, BUILT_IN))
    api.patch(f"{SETS}/mf-bare", {"spec": {"replicas": 4}}, fieldManager="x")
    assert "managedFields" not in api.get(f"{SETS}/mf-bare")["metadata"]


def test_a_client_may_set_managers_or_start_afresh(api: Live) -> None:
    created = api.create(PODS, pod("mf-set"), fieldManager="maker")
    entry = created["metadata"]["managedFields"][0] | {"manager": "renamed", "operation": "Apply"}
    changed = api.patch(
        f"{PODS}/mf-set", {"metadata": {"managedFields": [entry]}}, fieldManager="x"
    ).json()
    assert set(owners(changed)) == {("renamed", "Apply", "")}
    kept = api.patch(f"{PODS}/mf-set", {"metadata": {"managedFields": []}}).json()
    assert set(owners(kept)) == {("renamed", "Apply", "")}
    fresh = api.patch(f"{PODS}/mf-set", {"metadata": {"managedFields": [{}]}}).json()
    assert "managedFields" not in fresh["metadata"]


def test_kubectl_takes_over_what_it_applied_on_the_client(api: Live) -> None:
    config = replica_set("mf-csa", 2)
    replica_set_body = replica_set("mf-csa", 2)
    text = json.dumps(config)
    replica_set_body["metadata"]["annotations"] = {LAST_APPLIED: text}
    api.create(SETS, replica_set_body, fieldManager="kubectl-client-side-apply")
    config["spec"]["replicas"] = 3
    where = f"{SETS}/mf-csa"
    refused = api.client.patch(where, json=config, params={"fieldManager": "m"}, headers=APPLY)
    assert refused.status_code == 409
    response = api.client.patch(
        where, json=config, params={"fieldManager": "kubectl"}, headers=APPLY
    )
    assert response.status_code == 200
    body = response.json()
    assert body["spec"]["replicas"] == 3
    applied = json.loads(body["metadata"]["annotations"][LAST_APPLIED])
    assert applied["spec"]["replicas"] == 3


def test_old_updaters_become_one_beyond_ten(api: Live) -> None:
    api.create(PODS, pod("mf-many"), fieldManager="maker")
    for n in range(12):
        label = {"metadata": {"labels": {f"l{n}": "x"}}}
        updated = api.patch(f"{PODS}/mf-many", label, fieldManager=f"m{n}").json()
    assert len(owners(updated)) == 10
    assert ("ancient-changes", "Update", "") in owners(updated)
