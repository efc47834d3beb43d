"""The verbs over HTTP."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.integration.apiserver.manifests import pod, replica_set
from tests.integration.apiserver.serving import Live

PODS = "/api/v1/namespaces/default/pods"
SETS = "/apis/apps/v1/namespaces/default/replicasets"
CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
FORGED = {
    "uid": "forged",
    "generation": 99,
    "selfLink": "/x",
    "creationTimestamp": "2020-01-01T00:00:00Z",
}


def test_create_answers_201_with_the_object_as_stored(api: Live) -> None:
    created = api.create(PODS, pod("v-create"))
    assert created["status"] == {"phase": "Pending", "qosClass": "BestEffort"}
    assert created["metadata"]["uid"]
    assert api.get(f"{PODS}/v-create") == created


@pytest.mark.parametrize("kind", [CONFIG_MAPS, SETS])
def test_fields_of_the_system_are_not_taken_from_clients(api: Live, kind: str) -> None:
    body: dict[str, Any] = {"metadata": {"name": "v-forged"}}
    if kind == SETS:
        body = replica_set("v-forged")
    body["metadata"] |= FORGED
    made = api.create(kind, body)["metadata"]
    assert made["uid"] != "forged"
    assert made.get("generation") in {None, 1}
    assert made["creationTimestamp"] != FORGED["creationTimestamp"]
    assert api.patch(f"{kind}/v-forged", {"metadata": {"uid": "forged"}}).status_code == 409
    forged = {"metadata": FORGED | {"uid": made["uid"], "labels": {"a": "b"}}}
    assert api.patch(f"{kind}/v-forged", forged).status_code == 200
    changed = api.get(f"{kind}/v-forged")["metadata"]
    assert changed["labels"]["a"] == "b"
    for field in ("uid", "generation", "selfLink", "creationTimestamp"):
        assert changed.get(field) == made.get(field), field
    assert "selfLink" not in changed


@pytest.mark.parametrize(
    ("field", "value"),
    [("deletionTimestamp", "2020-01-01T00:00:00Z"), ("deletionGracePeriodSeconds", 3)],
)
def test_an_update_may_not_begin_or_hasten_a_deletion(api: Live, field: str, value: Any) -> None:
    name = f"v-{field.lower()}"
    sent = {"metadata": {"name": name, "finalizers": ["example.com/x"], field: value}}
    assert field not in api.create(CONFIG_MAPS, sent)["metadata"]
    refused = api.patch(f"{CONFIG_MAPS}/{name}", {"metadata": {field: value}})
    assert refused.status_code == 422
    assert f"metadata.{field}: Invalid value" in refused.json()["message"]
    assert "field is immutable" in refused.json()["message"]
    api.client.delete(f"{CONFIG_MAPS}/{name}")
    refused = api.patch(f"{CONFIG_MAPS}/{name}", {"metadata": {"deletionGracePeriodSeconds": 3}})
    assert refused.status_code == 422
    kept = api.patch(f"{CONFIG_MAPS}/{name}", {"metadata": {"deletionTimestamp": None}})
    assert "deletionTimestamp" in kept.json()["metadata"]


def test_a_new_object_has_no_version_except_in_a_dry_run(api: Live) -> None:
    body = {"metadata": {"name": "v-version", "resourceVersion": "7"}}
    assert api.create(CONFIG_MAPS, body, dryRun="All")["metadata"]["resourceVersion"] == "7"
    refused = api.request("POST", CONFIG_MAPS, body)
    assert (refused.status_code, refused.json().get("reason")) == (500, None)
    assert refused.json()["message"] == (
        "resourceVersion should not be set on objects to be created"
    )


def test_only_finalize_changes_the_finalizers_in_a_namespaces_spec(api: Live) -> None:
    path = "/api/v1/namespaces/v-finalizers"
    api.create("/api/v1/namespaces", {"metadata": {"name": "v-finalizers"}})
    metadata = {"name": "v-finalizers", "labels": {"a": "b"}}
    body: dict[str, Any] = {"metadata": metadata, "spec": {"finalizers": []}}
    changed = api.request("PUT", path, body).json()
    assert (changed["spec"]["finalizers"], changed["metadata"]["labels"]["a"]) == (
        ["kubernetes"],
        "b",
    )
    body["spec"]["finalizers"] = ["kubernetes", "example.com/x"]
    assert api.request("PUT", f"{path}/finalize", body).json()["spec"] == body["spec"]
    assert api.patch(path, {"spec": {"finalizers": None}}).json()["spec"] == body["spec"]


def test_an_apply_for_one_certain_object_creates_no_other(api: Live) -> None:
    body = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "v-uid", "uid": "forged"},
    }
    refused = api.client.patch(
        f"{CONFIG_MAPS}/v-uid",
        params={"fieldManager": "me"},
        json=body,
        headers={"content-type": "application/apply-patch+yaml"},
    )
    assert (refused.status_code, refused.json()["reason"]) == (409, "Conflict")
    assert "uid mismatch: the provided object specified uid forged" in refused.json()["message"]


def test_generate_name_gives_a_new_name_each_time(api: Live) -> None:
    body = pod("")
    body["metadata"] = {"generateName": "v-gen-"}
    names = {api.create(PODS, body)["metadata"]["name"] for _ in range(3)}
    assert len(names) == 3
    assert all(name.startswith("v-gen-") for name in names)


def test_a_dry_run_of_each_verb_changes_nothing(api: Live) -> None:
    api.create(PODS, pod("v-dry"), dryRun="All")
    assert api.client.get(f"{PODS}/v-dry").status_code == 404
    created = api.create(PODS, pod("v-dry2"))
    api.patch(f"{PODS}/v-dry2", {"metadata": {"labels": {"a": "b"}}}, dryRun="All")
    assert (
        api.request("PUT", f"{PODS}/v-dry2", created, params={"dryRun": "All"}).status_code == 200
    )
    assert api.client.delete(f"{PODS}/v-dry2", params={"dryRun": "All"}).status_code == 200
    assert api.get(f"{PODS}/v-dry2") == created
    refused = api.request("POST", PODS, pod("v-dry2"), params={"dryRun": "All"})
    assert refused.json()["reason"] == "AlreadyExists"


def test_yaml_bodies_are_read(api: Live) -> None:
    text = "apiVersion: v1\nkind: Pod\nmetadata: {name: v-yaml}\n"
    text += "spec: {containers: [{name: c, image: x}]}\n"
    headers = {"content-type": "application/yaml"}
    assert api.client.post(PODS, content=text, headers=headers).status_code == 201


def test_an_update_against_an_old_version_conflicts(api: Live) -> None:
    created = api.create(SETS, replica_set("v-update"))
    created["spec"]["replicas"] = 5
    assert api.request("PUT", f"{SETS}/v-update", created).json()["spec"]["replicas"] == 5
    stale = api.request("PUT", f"{SETS}/v-update", created)
    assert (stale.status_code, stale.json()["reason"]) == (409, "Conflict")


def test_a_patch_that_names_a_version_applies_to_that_only(api: Live) -> None:
    api.create(SETS, replica_set("v-pinned"))
    stale = {"metadata": {"resourceVersion": "1"}, "spec": {"replicas": 9}}
    assert api.patch(f"{SETS}/v-pinned", stale).status_code == 409


def test_a_json_patch_whose_test_fails_is_unprocessable(api: Live) -> None:
    api.create(SETS, replica_set("v-json"))
    operations = [{"op": "test", "path": "/spec/replicas", "value": 77}]
    refused = api.patch(f"{SETS}/v-json", operations, "json")
    assert (refused.status_code, refused.json()["reason"]) == (422, "Invalid")
    assert api.patch(f"{SETS}/v-json", {"not": "a list"}, "json").status_code == 400
    assert api.patch(f"{SETS}/v-json", [{"op": "add"}], "json").status_code in {400, 422}
    assert api.patch(f"{SETS}/v-json", ["nonsense"], "json").status_code in {400, 422}


def test_status_and_spec_do_not_touch_each_other(api: Live) -> None:
    api.create(SETS, replica_set("v-status"))
    both = {"spec": {"replicas": 8}, "status": {"replicas": 3}}
    after = api.patch(f"{SETS}/v-status/status", both).json()
    assert (after["spec"]["replicas"], after["status"]["replicas"]) == (2, 3)
    after = api.patch(f"{SETS}/v-status", both | {"status": {"replicas": 6}}).json()
    assert (after["spec"]["replicas"], after["status"]["replicas"]) == (8, 3)
    assert api.get(f"{SETS}/v-status/status")["status"]["replicas"] == 3


def test_scale_is_read_written_and_patched(api: Live) -> None:
    api.create(SETS, replica_set("v-scale"))
    scale = api.get(f"{SETS}/v-scale/scale")
    assert scale["kind"] == "Scale"
    assert scale["status"]["selector"] == "app=v-scale"
    scale["spec"]["replicas"] = 4
    assert api.request("PUT", f"{SETS}/v-scale/scale", scale).json()["spec"]["replicas"] == 4
    assert api.request("PUT", f"{SETS}/v-scale/scale", scale).status_code == 409
    assert api.patch(f"{SETS}/v-scale/scale", {"spec": {"replicas": 7}}).status_code == 200
    assert api.get(f"{SETS}/v-scale")["spec"]["replicas"] == 7
    assert api.patch(f"{SETS}/v-scale/scale", {"spec": {"replicas": -1}}).status_code == 422
    assert api.patch(f"{SETS}/v-scale/scale", {"spec": {"replicas": "x"}}).status_code == 400
    assert api.patch(f"{SETS}/v-scale/scale", {"spec": "x"}).status_code == 400


def test_a_binding_assigns_a_pod_once(api: Live) -> None:
    api.create(PODS, pod("v-bind"))
    binding = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "v-bind"}}
    binding |= {"target": {"kind": "Node", "name": "n1"}}
    assert api.create(f"{PODS}/v-bind/binding", binding)["status"] == "Success"
    bound = api.get(f"{PODS}/v-bind")
    assert bound["spec"]["nodeName"] == "n1"
    assert bound["status"]["conditions"][0]["type"] == "PodScheduled"
    assert api.request("POST", f"{PODS}/v-bind/binding", binding).status_code == 409


def test_a_pod_takes_the_labels_of_its_binding_and_of_its_nodes_topology(api: Live) -> None:
    zone = {"topology.kubernetes.io/zone": "a"}
    metadata = {"name": "v-zoned", "labels": {"other": "x", **zone}}
    node = api.create("/api/v1/nodes", {"metadata": metadata})
    not_ready = {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}
    assert node["spec"]["taints"] == [not_ready]
    api.create(PODS, pod("v-zone"))
    binding = {
        "metadata": {"name": "v-zone", "labels": {"app": "b"}},
        "target": {"kind": "Node", "name": "v-zoned"},
    }
    api.create(f"{PODS}/v-zone/binding", binding)
    assert api.get(f"{PODS}/v-zone")["metadata"]["labels"] == {"app": "b", **zone}


def test_a_binding_may_be_created_beside_the_pods(api: Live) -> None:
    bindings = PODS.replace("/pods", "/bindings")
    api.create(PODS, pod("v-bind-2"))
    binding = {"metadata": {"name": "v-bind-2"}, "target": {"kind": "Node", "name": "n1"}}
    assert api.create(bindings, binding)["status"] == "Success"
    assert api.get(f"{PODS}/v-bind-2")["spec"]["nodeName"] == "n1"
    assert api.request("POST", bindings, binding).status_code == 409
    assert api.request("POST", bindings, binding | {"metadata": {}}).status_code == 400
    assert api.request("GET", bindings).status_code == 405
    assert api.request("POST", "/api/v1/bindings", binding).status_code == 405


# after TestValidatePodBinding in pkg/apis/core/validation/validation_test.go
@pytest.mark.parametrize(
    ("target", "message"),
    [
        ({"name": ""}, "target.name: Required value"),
        ({"name": "n", "kind": "Pod"}, 'target.kind: Unsupported value: "Pod": '
         'supported values: "Node", "<empty>"'),
    ],
)  # fmt: skip
def test_a_binding_needs_a_node_as_its_target(
    api: Live, target: dict[str, str], message: str
) -> None:
    refused = api.request("POST", f"{PODS}/v-any/binding", {"target": target})
    assert refused.status_code == 422
    assert message in refused.json()["message"]
    other = {"metadata": {"name": "other"}, "target": {"name": "n"}}
    refused = api.request("POST", f"{PODS}/v-any/binding", other)
    assert refused.json()["message"] == "name in URL does not match name in Binding object"


def test_a_pod_on_a_node_is_marked_first_and_removed_by_force(api: Live) -> None:
    body = pod("v-grace")
    body["spec"]["nodeName"] = "n1"
    api.create(PODS, body)
    marked = api.client.delete(f"{PODS}/v-grace").json()
    assert marked["metadata"]["deletionGracePeriodSeconds"] == 30
    gone = api.client.delete(f"{PODS}/v-grace", params={"gracePeriodSeconds": "0"}).json()
    assert gone["kind"] == "Pod"
    assert api.client.get(f"{PODS}/v-grace").status_code == 404


def test_a_delete_answers_with_a_status_where_the_kind_is_no_pod(api: Live) -> None:
    created = api.create(SETS, replica_set("v-gone"))
    gone = api.client.delete(f"{SETS}/v-gone").json()
    assert (gone["kind"], gone["status"]) == ("Status", "Success")
    assert gone["details"] == {
        "name": "v-gone", "group": "apps", "kind": "replicasets", "uid": created["metadata"]["uid"],
    }  # fmt: skip


def test_delete_options_come_in_the_body_too(api: Live) -> None:
    created = api.create(SETS, replica_set("v-options"))
    wrong = {"kind": "DeleteOptions", "apiVersion": "v1", "preconditions": {"uid": "other"}}
    assert api.request("DELETE", f"{SETS}/v-options", wrong).status_code == 409
    right = {
        "preconditions": {"uid": created["metadata"]["uid"]},
        "propagationPolicy": "Foreground",
    }
    marked = api.request("DELETE", f"{SETS}/v-options", right).json()
    assert marked["metadata"]["finalizers"] == ["foregroundDeletion"]
    both = {"propagationPolicy": "Orphan", "orphanDependents": True}
    for invalid in ({"propagationPolicy": "Never"}, both):
        assert api.request("DELETE", f"{SETS}/v-options", invalid).status_code == 422
    for bad in ({"preconditions": "x"}, {"dryRun": 1}):
        assert api.request("DELETE", f"{SETS}/v-options", bad).status_code == 400


def test_who_deletes_jobs_is_told_that_their_pods_stay(api: Live) -> None:
    jobs = "/apis/batch/v1/namespaces/default/jobs"
    container = {"name": "main", "image": "none"}
    template = {"spec": {"containers": [container], "restartPolicy": "Never"}}
    for name in ("v-told", "v-decided", "v-many"):
        metadata = {"name": name, "labels": {"v-job": name}}
        api.create(jobs, {"metadata": metadata, "spec": {"template": template}})
    told = api.client.delete(f"{jobs}/v-told")
    decided = api.client.delete(f"{jobs}/v-decided", params={"propagationPolicy": "Background"})
    many = api.client.delete(jobs, params={"labelSelector": "v-job=v-many"})
    for answer in (told, many):
        assert answer.headers["warning"].startswith(
            '299 - "child pods are preserved by default when jobs are deleted; '
        )
    assert "warning" not in decided.headers
    assert told.json()["metadata"]["finalizers"] == ["orphan"]


def test_an_eviction_deletes(api: Live) -> None:
    api.create(PODS, pod("v-evict"))
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "v-evict"}}
    api.create(f"{PODS}/v-evict/eviction", eviction)
    assert api.client.get(f"{PODS}/v-evict").status_code == 404


def test_delete_collection_takes_what_the_selector_chooses(api: Live) -> None:
    for name, tier in (("v-c1", "a"), ("v-c2", "a"), ("v-c3", "b")):
        api.create(PODS, pod(name, labels={"v-tier": tier}))
    taken = api.client.delete(PODS, params={"labelSelector": "v-tier=a"}).json()
    assert [item["metadata"]["name"] for item in taken["items"]] == ["v-c1", "v-c2"]
    left = api.get(PODS, labelSelector="v-tier")
    assert [item["metadata"]["name"] for item in left["items"]] == ["v-c3"]


def test_a_namespace_goes_once_it_is_finalized(api: Live) -> None:
    created = api.create("/api/v1/namespaces", {"metadata": {"name": "v-final"}})
    assert created["spec"]["finalizers"] == ["kubernetes"]
    assert (created["status"], created["metadata"].get("generation")) == ({"phase": "Active"}, None)
    marked = api.client.delete("/api/v1/namespaces/v-final").json()
    assert marked["status"]["phase"] == "Terminating"
    assert api.get("/api/v1/namespaces/v-final")["status"]["phase"] == "Terminating"
    marked["spec"] = {}
    done = api.request("PUT", "/api/v1/namespaces/v-final/finalize", marked)
    assert done.status_code == 200
    assert api.client.get("/api/v1/namespaces/v-final").status_code == 404


def test_a_protobuf_scale_is_understood(api: Live) -> None:
    api.create(SETS, replica_set("v-proto"))
    meta = b"\x0a\x0eautoscaling/v1\x12\x05Scale"
    raw = b"\x12\x02\x08\x06"  # spec {replicas: 6}
    body = b"k8s\x00" + b"\x0a" + bytes([len(meta)]) + meta + b"\x12" + bytes([len(raw)]) + raw
    headers = {"content-type": "application/vnd.kubernetes.protobuf"}
    done = api.client.put(f"{SETS}/v-proto/scale", content=body, headers=headers)
    assert done.json()["spec"]["replicas"] == 6


def test_the_data_of_a_revision_has_the_bytes_that_go_writes(api: Live) -> None:
    """Upstream's controllers compare them, and make another revision if they differ."""
    path = "/apis/apps/v1/namespaces/default/controllerrevisions"
    body = {"metadata": {"name": "v-go"}, "revision": 1, "data": {"command": "a && b <c"}}
    api.create(path, body)
    labels = {"metadata": {"labels": {"a": "b"}}}
    merge = {"content-type": "application/strategic-merge-patch+json"}
    changed = api.request("PATCH", f"{path}/v-go", labels, headers=merge)
    assert changed.status_code == 200, changed.text
    for answer in (changed, api.client.get(f"{path}/v-go"), api.client.get(path)):
        assert rb'"data":{"command":"a \u0026\u0026 b \u003cc"}' in answer.content


@pytest.mark.parametrize("dry", [{}, {"dryRun": "All"}])
def test_the_version_0_means_whatever_is_stored(api: Live, dry: dict[str, str]) -> None:
    name = f"v-any{len(dry)}"
    path = f"/api/v1/namespaces/default/configmaps/{name}"
    api.create(path.rpartition("/")[0], {"metadata": {"name": name}})
    any_version = {"metadata": {"name": name, "resourceVersion": "0"}}
    whole = {"apiVersion": "v1", "kind": "ConfigMap", **any_version}
    assert api.client.put(path, params=dry, json=whole).status_code == 200
    for kind, change in (
        ("merge-patch+json", {**any_version, "data": {"a": "1"}}),
        ("strategic-merge-patch+json", {**any_version, "data": {"a": "2"}}),
        ("json-patch+json", [{"op": "replace", "path": "/metadata/resourceVersion", "value": "0"}]),
        ("apply-patch+yaml", {**whole, "data": {"b": "3"}}),
    ):
        answer = api.client.patch(
            path,
            params={**dry, **({"fieldManager": "m"} if "apply" in kind else {})},
            content=json.dumps(change),
            headers={"content-type": f"application/{kind}"},
        )
        assert answer.status_code == 200, answer.text
