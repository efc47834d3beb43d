from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kcm.api.scheme import BUILT_IN
from kcm.apiserver.documents import openapi
from kcm.apiserver.documents.openapi_protobuf import CONTENT_TYPE
from kcm.apiserver.http_errors import NotAcceptable, PathNotFound

OPENAPI = openapi.OpenApi(BUILT_IN)
OPERATIONS = Path(__file__).with_name("data") / "operations-1.36.txt.gz"


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


def test_every_place_has_a_document_whose_references_hold() -> None:
    for place, entry in document("v3")["paths"].items():
        assert entry["serverRelativeURL"].startswith(f"/openapi/v3/{place}?hash=")
        openapi = document("v3", *place.split("/"))
        names = {
            f"#/components/{section}/{name}"
            for section, found in openapi["components"].items()
            for name in found
        }
        assert set(refs(openapi)) == names
    whole = document("v2")
    names = {f"#/{part}/{name}" for part in ("definitions", "parameters") for name in whole[part]}
    assert set(refs(whole)) == names


def test_every_kind_is_named_by_a_schema_and_by_its_operations() -> None:
    for resource in BUILT_IN.resources():
        place = f"{'apis' if resource.group else 'api'}/{resource.api_version}"
        openapi = document("v3", *place.split("/"))
        kind = {"group": resource.group, "version": resource.version, "kind": resource.kind}
        schemas = openapi["components"]["schemas"].values()
        assert any(kind in s.get("x-kubernetes-group-version-kind", ()) for s in schemas)
        patches = [path["patch"] for path in openapi["paths"].values() if "patch" in path]
        mine = [p for p in patches if p["x-kubernetes-group-version-kind"] == kind]
        # kubectl looks for these two by name
        assert all(
            {"dryRun", "fieldValidation"} <= {q.get("name") for q in p["parameters"]} for p in mine
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


def upstream_operations() -> dict[tuple[str, str], list[str]]:
    """Returns id, action, kind and tag of the operations of Kubernetes 1.36.2, alpha ones too, by
    path and method. They were taken from its OpenAPI document.
    """
    lines = gzip.decompress(OPERATIONS.read_bytes()).decode().splitlines()
    return {(path, method): rest for path, method, *rest in (line.split() for line in lines)}


def test_operations_are_called_as_upstream_calls_them() -> None:
    upstream = upstream_operations()
    for path, item in document("v2")["paths"].items():
        if "storagemigration.k8s.io/v1beta1" in path:
            continue  # upstream's is v1beta1
        for method, operation in item.items():
            if method == "parameters":
                continue
            kind = operation.get("x-kubernetes-group-version-kind", {})
            parts = [kind.get(part) for part in ("group", "version", "kind")]
            assert [
                operation["operationId"],
                operation.get("x-kubernetes-action", "-"),
                "/".join(filter(None, parts)) or "-",
                operation["tags"][0],
            ] == upstream[path, method], path


def test_no_operation_of_a_described_kind_is_missing() -> None:
    paths = document("v2")["paths"]
    kinds = {
        tuple(operation["x-kubernetes-group-version-kind"].values())
        for item in paths.values()
        for name, operation in item.items()
        if "x-kubernetes-group-version-kind" in operation and name != "parameters"
    }
    names = {"/".join(filter(None, kind)) for kind in kinds}
    missing = [
        (path, method)
        for (path, method), (_, _, kind, _) in upstream_operations().items()
        if kind in names and method not in paths.get(path, {})
    ]
    assert missing == []
