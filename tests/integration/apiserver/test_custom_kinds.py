"""Custom kinds over HTTP, from their definition to their deletion."""

from __future__ import annotations

import itertools
import json
from typing import Any

import pytest

from kcm.testing.waiting import until
from tests.integration.apiserver.definitions import crontab, crontabs, version
from tests.integration.apiserver.serving import Live

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_GROUPS = itertools.count()
MERGE = {"content-type": "application/merge-patch+json"}
APPLY = {"content-type": "application/apply-patch+yaml"}


class Kind:
    """CronTabs in a group of their own."""

    def __init__(self, api: Live, **changes: Any) -> None:
        self.api = api
        self.group = f"g{next(_GROUPS)}.example.com"
        self.crd = f"{CRDS}/crontabs.{self.group}"
        api.create(CRDS, crontabs(self.group, **changes))
        until(lambda: self.conditions().get("Established") == "True")

    def conditions(self) -> dict[str, str]:
        status = self.api.get(self.crd).get("status", {})
        return {c["type"]: c["status"] for c in status.get("conditions", ())}

    def path(self, name: str = "", version: str = "v1") -> str:
        base = f"/apis/{self.group}/{version}/namespaces/default/crontabs"
        return f"{base}/{name}" if name else base

    def body(self, name: str, version: str = "v1", **spec: Any) -> dict[str, Any]:
        return crontab(self.group, name, version, **spec)

    def create(self, name: str, version: str = "v1", **spec: Any) -> Any:
        return self.api.create(self.path(version=version), self.body(name, version, **spec))


@pytest.fixture(scope="module")
def kind(api: Live) -> Kind:
    return Kind(api)


def test_a_kind_is_served_a_moment_after_its_definition(api: Live) -> None:
    kind = Kind(api)
    status = api.get(kind.crd)["status"]
    assert status["acceptedNames"]["plural"] == "crontabs"
    assert status["storedVersions"] == ["v1"]
    assert api.get(kind.path())["kind"] == "CronTabList"


def test_discovery_and_openapi_have_every_served_version(kind: Kind, api: Live) -> None:
    group = api.get(f"/apis/{kind.group}")
    assert [entry["version"] for entry in group["versions"]] == ["v1", "v1beta1"]
    assert group["preferredVersion"]["version"] == "v1"
    names = {r["name"] for r in api.get(f"/apis/{kind.group}/v1beta1")["resources"]}
    assert names == {"crontabs", "crontabs/status", "crontabs/scale"}
    schemas = api.get(f"/openapi/v3/apis/{kind.group}/v1")["components"]["schemas"]
    reversed_group = ".".join(reversed(kind.group.split(".")))
    schema = schemas[f"{reversed_group}.v1.CronTab"]
    assert schema["properties"]["spec"]["properties"]["cronSpec"]["type"] == "string"
    assert schema["x-kubernetes-group-version-kind"][0]["kind"] == "CronTab"
    assert f"{reversed_group}.v1beta1.CronTab" in api.get("/openapi/v2")["definitions"]


def test_one_object_shows_in_all_versions(kind: Kind, api: Live) -> None:
    created = kind.create("versions", "v1beta1", image="x")
    assert created["apiVersion"] == f"{kind.group}/v1beta1"
    assert api.get(kind.path("versions"))["apiVersion"] == f"{kind.group}/v1"
    listed = api.get(kind.path(version="v1beta1"))
    assert listed["apiVersion"] == f"{kind.group}/v1beta1"
    assert {item["apiVersion"] for item in listed["items"]} == {f"{kind.group}/v1beta1"}
    raw = api.store.get_raw(api.store_resource(kind.group), "default/versions")
    assert json.loads(raw)["apiVersion"] == f"{kind.group}/v1"


def test_unknown_fields_are_pruned_warned_of_or_refused(kind: Kind, api: Live) -> None:
    body = kind.body("pruned", foo=1, free={"any": {"thing": 1}}, port="http")
    response = api.client.post(kind.path(), json=body)
    assert response.headers["warning"] == '299 - "unknown field \\"spec.foo\\""'
    spec = response.json()["spec"]
    assert "foo" not in spec
    assert spec["free"] == {"any": {"thing": 1}}
    strict = api.client.post(kind.path(), json=body, params={"fieldValidation": "Strict"})
    assert strict.status_code == 400
    assert 'strict decoding error: unknown field "spec.foo"' in strict.json()["message"]


def test_defaults_are_filled_in_and_nulls_dropped(kind: Kind) -> None:
    spec = kind.create("defaulted", note=None, image=None)["spec"]
    assert spec == {"cronSpec": "* * * * */5", "image": "busybox", "replicas": 1, "note": None}


def test_objects_that_do_not_fit_are_refused_in_upstreams_words(kind: Kind, api: Live) -> None:
    body = kind.body("bad", replicas="three", cronSpec="never")
    response = api.client.post(kind.path(), json=body)
    assert response.status_code == 422
    causes = {cause["field"]: cause["message"] for cause in response.json()["details"]["causes"]}
    assert causes["spec.replicas"] == (
        'Invalid value: "string": spec.replicas in body must be of type integer: "string"'
    )
    assert "spec.cronSpec in body should match" in causes["spec.cronSpec"]
    missing = api.client.post(kind.path(), json={**body, "spec": {}})
    assert "spec.cronSpec: Required value" in missing.json()["message"]


def test_rules_are_checked_those_about_changes_too(kind: Kind, api: Live) -> None:
    refused = api.client.post(kind.path(), json=kind.body("ruled", replicas=7))
    assert refused.json()["message"].endswith(
        "is invalid: spec: Invalid value: busybox does not scale"
    )
    kind.create("ruled", selector="a=b")
    changed = api.patch(kind.path("ruled"), {"spec": {"selector": "c=d"}})
    assert changed.status_code == 422
    assert "spec.selector: Invalid value" in changed.json()["message"]


def test_the_status_has_an_endpoint_of_its_own(kind: Kind, api: Live) -> None:
    body = kind.body("status") | {"status": {"phase": "Good"}}
    created = api.create(kind.path(), body)
    assert "status" not in created
    assert created["metadata"]["generation"] == 1
    done = api.patch(f"{kind.path('status')}/status", {"status": {"phase": "Bad"}, "spec": {}})
    answer = done.json()
    assert (answer["status"], answer["metadata"]["generation"]) == ({"phase": "Bad"}, 1)
    wrong = api.patch(f"{kind.path('status')}/status", {"status": {"phase": "Odd"}})
    assert 'Unsupported value: "Odd"' in wrong.json()["message"]
    other = api.patch(kind.path("status"), {"spec": {"image": "x"}, "status": {"phase": "Good"}})
    assert other.json()["status"] == {"phase": "Bad"}
    assert other.json()["metadata"]["generation"] == 2


def test_without_the_subresource_the_status_is_a_field_like_others(api: Live) -> None:
    plain = version("v1", storage=True)
    plain["subresources"] = {}
    kind = Kind(api, versions=[plain])
    status = api.create(kind.path(), kind.body("one") | {"status": {"phase": "Good"}})
    assert status["status"] == {"phase": "Good"}
    changed = api.patch(kind.path("one"), {"status": {"phase": "Bad"}}).json()
    assert changed["metadata"]["generation"] == 2
    assert api.client.get(f"{kind.path('one')}/status").status_code == 404
    assert api.client.get(f"{kind.path('one')}/scale").status_code == 404


def test_scale_reads_and_writes_where_the_definition_says(kind: Kind, api: Live) -> None:
    kind.create("scaled")
    api.patch(f"{kind.path('scaled')}/status", {"status": {"replicas": 1, "selector": "a=b"}})
    stored = api.get(f"{kind.path('scaled')}/scale")
    assert (stored["spec"], stored["status"]) == (
        {"replicas": 1},
        {"replicas": 1, "selector": "a=b"},
    )
    assert api.patch(f"{kind.path('scaled')}/scale", {"spec": {"replicas": 4}}).status_code == 200
    assert api.get(kind.path("scaled"))["spec"]["replicas"] == 4
    refused = api.patch(f"{kind.path('scaled')}/scale", {"spec": {"replicas": 9}})
    assert "busybox does not scale" in refused.json()["message"]


def test_tables_have_the_definitions_columns(kind: Kind, api: Live) -> None:
    kind.create("table")
    accept = {"accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}
    table = api.client.get(kind.path("table"), headers=accept).json()
    columns = [(c["name"], c["type"], c["priority"]) for c in table["columnDefinitions"]]
    assert columns == [
        ("Name", "string", 0),
        ("Spec", "string", 0),
        ("Replicas", "integer", 1),
        ("Age", "date", 0),
    ]
    assert table["rows"][0]["cells"][:3] == ["table", "* * * * */5", 1]


def test_patches_and_bodies_that_custom_kinds_do_not_take(kind: Kind, api: Live) -> None:
    kind.create("media")
    assert api.patch(kind.path("media"), {}, "strategic").status_code == 415
    protobuf = {"content-type": "application/vnd.kubernetes.protobuf"}
    assert api.client.post(kind.path(), content=b"k8s\0", headers=protobuf).status_code == 415
    replaced = [{"op": "replace", "path": "/spec/image", "value": "y"}]
    assert api.patch(kind.path("media"), replaced, "json").json()["spec"]["image"] == "y"


def test_server_side_apply_merges_lists_by_the_schemas_keys(kind: Kind, api: Live) -> None:
    def apply(manager: str, *names: str, **more: Any) -> Any:
        body = kind.body("applied", env=[{"name": n, "value": manager} for n in names])
        return api.client.patch(
            kind.path("applied"), json=body, headers=APPLY, params={"fieldManager": manager, **more}
        )

    assert apply("one", "a").status_code == 201
    both = apply("two", "b").json()["spec"]["env"]
    assert [item["name"] for item in both] == ["a", "b"]
    assert apply("two", "a").status_code == 409
    forced = apply("two", "a", force="true").json()["spec"]["env"]
    assert forced == [{"name": "a", "value": "two"}]


def test_watches_show_objects_in_the_version_that_was_asked_for(kind: Kind, api: Live) -> None:
    start = api.get(kind.path())["metadata"]["resourceVersion"]
    query = {"watch": "1", "resourceVersion": start, "timeoutSeconds": "5"}
    with api.client.stream("GET", kind.path(version="v1beta1"), params=query) as stream:
        kind.create("watched")
        event = json.loads(next(stream.iter_lines()))
    assert event["type"] == "ADDED"
    assert event["object"]["apiVersion"] == f"{kind.group}/v1beta1"
    assert event["object"]["metadata"]["name"] == "watched"


def test_a_changed_definition_is_served_as_it_now_is(api: Live) -> None:
    kind = Kind(api)
    kind.create("one")
    body = api.get(kind.crd)
    body["spec"]["versions"][0]["storage"] = False
    body["spec"]["versions"][1]["storage"] = True
    schema = body["spec"]["versions"][1]["schema"]["openAPIV3Schema"]
    schema["properties"]["spec"]["properties"]["late"] = {"type": "string", "default": "yes"}
    assert api.client.put(kind.crd, json=body).status_code == 200
    until(lambda: api.get(kind.path("one", "v1beta1"))["spec"].get("late") == "yes")
    assert "late" not in api.get(kind.path("one"))["spec"]
    assert api.get(kind.crd)["status"]["storedVersions"] == ["v1", "v1beta1"]
    raw = api.store.get_raw(api.store_resource(kind.group), "default/one")
    assert json.loads(raw)["apiVersion"] == f"{kind.group}/v1"
    until(lambda: api.get(kind.path(version="v1beta1"))["items"][0]["spec"].get("late") == "yes")


def test_versions_that_are_not_served_are_not_found(api: Live) -> None:
    kind = Kind(api, versions=[version("v1", storage=True), version("v2", served=False)])
    assert api.client.get(kind.path(version="v2")).status_code == 404


def test_names_that_are_taken_are_not_served(api: Live) -> None:
    kind = Kind(api)
    other = crontabs(kind.group)
    other["metadata"]["name"] = f"crons.{kind.group}"
    other["spec"]["names"] |= {"plural": "crons", "singular": "cron", "shortNames": []}
    api.create(CRDS, other)
    path = f"{CRDS}/crons.{kind.group}"
    until(lambda: "status" in api.get(path) and api.get(path)["status"].get("conditions"))
    reasons = {c["type"]: c["reason"] for c in api.get(path)["status"]["conditions"]}
    assert reasons == {"NamesAccepted": "ListKindConflict", "Established": "NotAccepted"}
    assert api.client.get(f"/apis/{kind.group}/v1/crons").status_code == 404
    api.request("DELETE", kind.crd)
    until(lambda: api.client.get(f"/apis/{kind.group}/v1/crons").status_code == 200)


def test_a_schema_that_is_not_structural_is_refused(api: Live) -> None:
    body = crontabs("bad.example.com")
    schema = body["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    body["spec"]["versions"][0]["schema"] = {
        "openAPIV3Schema": {**schema, "properties": {"spec": {"x-kubernetes-list-type": "odd"}}}
    }
    response = api.client.post(CRDS, json=body)
    assert response.status_code == 422
    assert (
        "spec.versions[0].schema.openAPIV3Schema.properties[spec].type: Required value: "
        "must not be empty for specified object fields"
    ) in response.json()["message"]


def test_a_definition_goes_when_its_objects_have_gone(api: Live) -> None:
    kind = Kind(api)
    kind.create("free")
    held = kind.body("held")
    held["metadata"]["finalizers"] = ["example.com/hold"]
    api.create(kind.path(), held)
    api.request("DELETE", kind.crd)
    until(lambda: kind.conditions().get("Terminating") == "True")
    until(lambda: len(api.get(kind.path())["items"]) == 1)
    refused = api.client.post(kind.path(), json=kind.body("late"))
    assert refused.status_code == 405
    assert "while custom resource definition is terminating" in refused.json()["message"]
    assert api.client.get(kind.crd).status_code == 200
    api.patch(kind.path("held"), {"metadata": {"finalizers": None}})
    until(lambda: api.client.get(kind.crd).status_code == 404)
    until(lambda: api.client.get(kind.path()).status_code == 404)
    assert kind.group not in {g["name"] for g in api.get("/apis")["groups"]}


def test_a_watch_ends_with_its_kind(api: Live) -> None:
    kind = Kind(api)
    with api.client.stream("GET", kind.path(), params={"watch": "1"}) as stream:
        api.request("DELETE", kind.crd)
        assert list(stream.iter_lines()) == []


def test_objects_are_selected_by_the_definitions_fields(api: Live) -> None:
    selectable = version("v1", storage=True) | {"selectableFields": [{"jsonPath": ".spec.image"}]}
    kind = Kind(api, versions=[selectable])
    kind.create("one", image="x")
    kind.create("two", image="y")
    items = api.get(kind.path(), fieldSelector="spec.image=x")["items"]
    assert [item["metadata"]["name"] for item in items] == ["one"]
    other = api.client.get(kind.path(), params={"fieldSelector": "spec.replicas=1"})
    assert other.status_code == 400


def test_watches_and_deletions_of_collections_are_selected_as_lists_are(api: Live) -> None:
    paths = [{"jsonPath": ".spec.image"}, {"jsonPath": ".spec.replicas"}]
    kind = Kind(api, versions=[version("v1", storage=True) | {"selectableFields": paths}])
    selected = {"fieldSelector": "spec.image=x,spec.replicas=2"}
    kind.create("other", image="y", replicas=2)
    kind.create("one", image="x", replicas=2)
    params = selected | {"watch": "1", "timeoutSeconds": "1", "resourceVersion": "0"}
    with api.client.stream("GET", kind.path(), params=params) as stream:
        events = [json.loads(line) for line in stream.iter_lines()]
    assert [event["object"]["metadata"]["name"] for event in events] == ["one"]
    assert api.client.delete(kind.path(), params=selected).status_code == 200
    items = api.get(kind.path())["items"]
    assert [item["metadata"]["name"] for item in items] == ["other"]


def test_what_cannot_be_selected_is_refused_with_the_definition(api: Live) -> None:
    wrong = version("v1", storage=True) | {"selectableFields": [{"jsonPath": ".spec.env"}]}
    response = api.client.post(CRDS, json=crontabs("wrong.example.com", versions=[wrong]))
    assert response.status_code == 422
    assert "must point to a field of type string, boolean or integer" in response.json()["message"]


def test_rules_use_named_formats_and_their_messages(api: Live) -> None:
    checked = json.loads(json.dumps(version("v1", storage=True)))
    check = "format.dns1123Label().validate(self.image)"
    rule = {"rule": f"!{check}.hasValue()", "messageExpression": f"{check}.value()[0]"}
    checked["schema"]["openAPIV3Schema"]["properties"]["spec"]["x-kubernetes-validations"] = [rule]
    kind = Kind(api, versions=[checked])
    kind.create("good", image="busybox")
    response = api.client.post(kind.path(), json=kind.body("bad", image="Busy Box"))
    assert response.status_code == 422
    assert "a lowercase RFC 1123 label must consist of" in response.json()["message"]
