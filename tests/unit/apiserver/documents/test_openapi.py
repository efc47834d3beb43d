from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from kcm.api.scheme import BUILT_IN
from kcm.apiserver.documents import openapi
from kcm.apiserver.documents.openapi_protobuf import CONTENT_TYPE
from kcm.apiserver.http_errors import NotAcceptable, PathNotFound

OPENAPI = openapi.OpenApi(BUILT_IN)


def document(*rest: str) -> dict[str, Any]:
    body: dict[str, Any] = json.loads(OPENAPI.respond(rest, "").body)
    return body


def refs(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        if "$ref" in value:
            yield value["$ref"]
        for inner in value.values():
            yield from refs(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from refs(inner)


def test_every_group_version_has_a_document_whose_references_hold() -> None:
    for place, entry in document("v3")["paths"].items():
        assert entry["serverRelativeURL"].startswith(f"/openapi/v3/{place}?hash=")
        openapi = document("v3", *place.split("/"))
        names = {f"#/components/schemas/{name}" for name in openapi["components"]["schemas"]}
        assert set(refs(openapi)) <= names
    whole = document("v2")
    assert set(refs(whole)) <= {f"#/definitions/{name}" for name in whole["definitions"]}


def test_every_kind_is_named_by_a_schema_and_by_its_operations() -> None:
    for resource in BUILT_IN.resources():
        place = f"{'apis' if resource.group else 'api'}/{resource.api_version}"
        openapi = document("v3", *place.split("/"))
        kind = {"group": resource.group, "version": resource.version, "kind": resource.kind}
        schemas = openapi["components"]["schemas"].values()
        assert any(kind in s.get("x-kubernetes-group-version-kind", ()) for s in schemas)
        patches = [path["patch"] for path in openapi["paths"].values() if "patch" in path]
        mine = [p for p in patches if p["x-kubernetes-group-version-kind"] == kind]
        assert all(
            {"dryRun", "fieldValidation"} <= {q["name"] for q in p["parameters"]} for p in mine
        )
        assert mine


def test_lists_say_how_patches_merge_them() -> None:
    schemas = document("v3", "api", "v1")["components"]["schemas"]
    ports = schemas["io.k8s.api.core.v1.Container"]["properties"]["ports"]
    assert ports["x-kubernetes-patch-merge-key"] == "containerPort"
    assert ports["x-kubernetes-list-map-keys"] == ["containerPort", "protocol"]
    spec = schemas["io.k8s.api.core.v1.PodSpec"]["properties"]
    assert spec["volumes"]["x-kubernetes-patch-strategy"] == "merge,retainKeys"
    assert spec["tolerations"]["x-kubernetes-list-type"] == "atomic"


def test_version_two_is_protobuf_for_who_asks_for_that() -> None:
    response = OPENAPI.respond(["v2"], CONTENT_TYPE)
    assert "@" not in response.content_type
    assert response.body.startswith(b"\x0a\x032.0")


def test_what_is_not_there_is_not_found_or_not_acceptable() -> None:
    with pytest.raises(PathNotFound):
        OPENAPI.respond(["v3", "apis", "none", "v1"], "")
    with pytest.raises(NotAcceptable):
        OPENAPI.respond(["v3"], "text/html")
