"""Fields that a kind has not: dropped with a warning, refused by an apply, gone when read."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kcm.api.core_v1 import Pod
from tests.integration.apiserver.manifests import pod
from tests.integration.apiserver.serving import Live

MAPS = "/api/v1/namespaces/default/configmaps"
PODS = "/api/v1/namespaces/default/pods"
DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
APPLY = {"content-type": "application/apply-patch+yaml"}
JSON_PATCH = [
    {"op": "add", "path": "/bogus", "value": "5"},
    {"op": "add", "path": "/metadata/bogusm", "value": "1"},
]


def strange(name: str) -> dict[str, Any]:
    return {"metadata": {"name": name, "bogusm": "1"}, "bogus": "5"}


def require_clean(api: Live, name: str) -> None:
    stored = api.get(f"{MAPS}/{name}")
    assert "bogus" not in json.dumps(stored)
    assert b"bogus" not in api.store.get_raw(
        api.store.scheme.lookup("configmaps"), f"default/{name}"
    )


def test_a_create_and_an_update_drop_them_with_a_warning(api: Live) -> None:
    created = api.request("POST", MAPS, strange("uf-post"))
    assert created.status_code == 201
    assert 'unknown field \\"metadata.bogusm\\"' in created.headers["warning"]
    assert 'unknown field \\"bogus\\"' in created.headers["warning"]
    assert "bogus" not in created.text
    require_clean(api, "uf-post")
    updated = api.request("PUT", f"{MAPS}/uf-post", strange("uf-post"))
    assert 'unknown field \\"bogus\\"' in updated.headers["warning"]
    require_clean(api, "uf-post")
    silent = {"fieldValidation": "Ignore"}
    assert "warning" not in api.request("POST", MAPS, strange("uf-no"), params=silent).headers
    require_clean(api, "uf-no")


@pytest.mark.parametrize("kind", ["merge", "strategic", "json"])
def test_every_patch_drops_them_with_a_warning(api: Live, kind: str) -> None:
    name = f"uf-{kind}"
    api.create(MAPS, {"metadata": {"name": name}})
    body: Any = JSON_PATCH if kind == "json" else strange(name)
    patched = api.patch(f"{MAPS}/{name}", body, kind)
    assert patched.status_code == 200, patched.text
    assert 'unknown field \\"bogus\\"' in patched.headers["warning"]
    require_clean(api, name)
    refused = api.patch(f"{MAPS}/{name}", body, kind, fieldValidation="Strict")
    assert refused.status_code == 422
    assert (
        'strict decoding error: unknown field "metadata.bogusm", unknown field "bogus"'
        in (refused.json()["message"])
    )


@pytest.mark.parametrize(
    ("path", "body", "message"),
    [
        (
            f"{MAPS}/uf-apply",
            {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": {"name": "uf-apply", "bogusm": "1"},
            },
            "failed to create typed patch object (/uf-apply; /v1, Kind=ConfigMap): "
            ".metadata.bogusm: field not declared in schema",
        ),
        (
            f"{DEPLOYMENTS}/uf-apply",
            {
                "apiVersion": "apps/v1",
                "kind": "Deployment",
                "metadata": {"name": "uf-apply", "namespace": "default"},
                "spec": {"replicas": "three"},
            },
            "failed to create typed patch object (default/uf-apply; apps/v1, Kind=Deployment): "
            ".spec.replicas: expected numeric (int or float), got string",
        ),
    ],
)
def test_an_apply_refuses_them_by_name(
    api: Live, path: str, body: dict[str, Any], message: str
) -> None:
    refused = api.client.patch(path, params={"fieldManager": "me"}, json=body, headers=APPLY)
    status = refused.json()
    assert (refused.status_code, status["message"], status.get("reason")) == (500, message, None)


def test_an_apply_that_repeats_itself_is_refused_or_told(api: Live) -> None:
    text = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: uf-twice\ndata:\n  a: v1\n  a: v2\n"
    params = {"fieldManager": "me", "fieldValidation": "Strict"}
    refused = api.client.patch(f"{MAPS}/uf-twice", params=params, content=text, headers=APPLY)
    assert (refused.status_code, refused.json()["message"]) == (
        400,
        "error strict decoding YAML: error converting YAML to JSON: yaml: unmarshal errors:\n"
        '  line 7: key "a" already set in map',
    )
    params["fieldValidation"] = "Warn"
    told = api.client.patch(f"{MAPS}/uf-twice", params=params, content=text, headers=APPLY)
    assert (told.status_code, told.json()["data"]) == (201, {"a": "v2"})
    assert 'line 7: key \\"a\\" already set in map' in told.headers["warning"]


def test_what_an_earlier_version_stored_is_served_without_them(api: Live) -> None:
    api.create("/api/v1/namespaces", {"metadata": {"name": "uf-before"}})
    pods = "/api/v1/namespaces/uf-before/pods"
    api.create(pods, pod("old"))
    version = api.create(pods, pod("new"))["metadata"]["resourceVersion"]
    wanted = json.loads(api.store.get_raw(Pod.resource, "uf-before/old"))
    wanted["metadata"]["resourceVersion"] = str(int(version) + 1)
    earlier = {"apiVersion": wanted["apiVersion"], **wanted, "bogus": 1}
    earlier["spec"] = {**wanted["spec"], "bogus": 1}
    keys, raw = api.store.io.keys, json.dumps(earlier)
    api.store.io.execute("HSET", keys.object("pods", "uf-before/old"), "json", raw)
    api.store.io.execute(
        "XADD", keys.watch("pods"), f"{int(version) + 1}-0",
        "type", "MODIFIED", "key", "uf-before/old", "object", raw,
    )  # fmt: skip
    api.store.io.execute("SET", keys.resource_version(), int(version) + 1)
    api.store.io.execute("HSET", keys.last_rv(), "pods", int(version) + 1)
    assert api.get(f"{pods}/old") == wanted
    items = api.get(pods)["items"]
    assert [item["metadata"]["name"] for item in items] == ["new", "old"]
    assert items[1] == {name: wanted[name] for name in ("metadata", "spec", "status")}
    params = {"watch": "1", "timeoutSeconds": "1", "resourceVersion": version}
    assert json.loads(api.client.get(pods, params=params).text)["object"] == wanted


def test_items_of_lists_have_no_kind_except_those_of_custom_kinds(api: Live) -> None:
    api.create(MAPS, {"metadata": {"name": "uf-list"}})
    listed = api.get(MAPS)
    assert listed["kind"] == "ConfigMapList"
    assert all(item.keys() <= {"metadata", "data"} for item in listed["items"])
    one = api.get(f"{MAPS}/uf-list")
    assert (one.pop("kind"), one.pop("apiVersion")) == ("ConfigMap", "v1")
    assert one in listed["items"]
    table = {"accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}
    rows = api.client.get(MAPS, headers=table, params={"includeObject": "Object"}).json()["rows"]
    assert {row["object"]["kind"] for row in rows} == {"ConfigMap"}
