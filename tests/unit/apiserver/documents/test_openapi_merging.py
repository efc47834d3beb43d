"""How OpenAPI documents of other servers join our own.

The cases follow TestFilterSpecs, TestMergeSpecsRenameModel and
TestMergeSpecsRenameModelWithExistingV2InDestination in pkg/aggregator/aggregator_test.go, and
TestConvert in pkg/openapiconv/convert_test.go of k8s.io/kube-openapi.
"""

from __future__ import annotations

from typing import Any

import pytest

from kcm.apiserver.documents import openapi_protobuf
from kcm.apiserver.documents.openapi_merging import convert_to_v3, merge, select_paths

INFO = {"title": "t", "version": "v"}


def ref(name: str, version: int = 2) -> dict[str, str]:
    return {"$ref": f"#/{'definitions' if version == 2 else 'components/schemas'}/{name}"}


def operation(name: str) -> dict[str, Any]:
    body = {"in": "body", "name": "body", "schema": ref(name)}
    return {"post": {"parameters": [body], "responses": {"200": {"description": "OK"}}}}


DOCUMENT = {
    "swagger": "2.0",
    "paths": {"/test": operation("Test"), "/othertest": operation("Test2")},
    "definitions": {
        "Test": {"type": "object", "properties": {"other": ref("Inner")}},
        "Inner": {"type": "object", "properties": {"again": ref("Test")}},
        "Test2": {"type": "object"},
        "Unused": {"type": "object"},
    },
}


def test_paths_are_taken_with_what_they_refer_to() -> None:
    piece = select_paths(DOCUMENT, "/test")
    assert list(piece["paths"]) == ["/test"]
    assert set(piece["definitions"]) == {"Test", "Inner"}
    assert select_paths({"paths": {}}, "/test") == {
        "paths": {}, "definitions": {}, "parameters": {}
    }  # fmt: skip


@pytest.mark.parametrize(
    "document",
    [None, 7, [], {}, {"paths": 7}, {"paths": {"/test": 1}}, {"paths": {}, "definitions": [1]}],
)
def test_rubbish_is_no_document(document: Any) -> None:
    with pytest.raises(ValueError, match="document"):
        select_paths(document, "/")


OWN: dict[str, Any] = {
    "paths": {"/foo": operation("Test")},
    "definitions": {"Test": {"type": "string"}},
}


def test_a_definition_of_another_one_s_name_gets_a_new_name() -> None:
    piece = {"paths": {"/bar": operation("Test")}, "definitions": {"Test": {"type": "integer"}}}
    merged = merge(OWN, [piece])
    assert merged["definitions"] == {"Test": {"type": "string"}, "Test_v2": {"type": "integer"}}
    assert merged["paths"]["/bar"] == operation("Test_v2")
    assert merged["paths"]["/foo"] == operation("Test")
    more = {"paths": {"/baz": operation("Test")}, "definitions": {"Test": {"type": "number"}}}
    again = merge(OWN, [piece, piece, more])
    assert set(again["definitions"]) == {"Test", "Test_v2", "Test_v3"}
    assert OWN["definitions"] == {"Test": {"type": "string"}}


def test_an_equal_definition_is_shared_and_our_path_stays() -> None:
    piece = {"paths": {"/foo": {}}, "definitions": {"Test": {"type": "string"}}}
    assert merge(OWN, [piece]) == OWN


SHARED = {"$ref": "#/parameters/body-1"}


def with_parameters(path: str, schema: str) -> dict[str, Any]:
    """Returns a document whose operation has its body by reference, as upstream's have."""
    return {
        "paths": {path: {"post": {"parameters": [SHARED], "responses": {}}}},
        "parameters": {"body-1": {"in": "body", "name": "body", "schema": ref(schema)},
                       "unused": {"in": "query", "name": "limit", "type": "integer"}},
        "definitions": {schema: {"type": "object"}},
    }  # fmt: skip


def test_parameters_that_are_referred_to_are_taken_with_their_schemas() -> None:
    piece = select_paths(with_parameters("/test", "Test"), "/test")
    assert list(piece["parameters"]) == ["body-1"]
    assert list(piece["definitions"]) == ["Test"]
    encoded = openapi_protobuf.encode({"swagger": "2.0", "info": INFO, **piece})
    assert encoded.count(b"#/parameters/body-1") == 1
    assert encoded.count(b"#/definitions/Test") == 1


def test_a_parameter_of_another_one_s_name_gets_a_new_name() -> None:
    pieces = [with_parameters(f"/{name}", name) for name in ("one", "two")]
    merged = merge({"paths": {}, "definitions": {}}, pieces)
    assert merged["parameters"]["body-1"]["schema"] == ref("one")
    assert merged["parameters"]["body-1_v2"]["schema"] == ref("two")
    assert merged["paths"]["/two"]["post"]["parameters"] == [{"$ref": "#/parameters/body-1_v2"}]


def test_version_3_has_the_parameters_themselves() -> None:
    document = convert_to_v3(with_parameters("/test", "Test"), INFO)
    post = document["paths"]["/test"]["post"]
    assert post["requestBody"] == {"content": {"application/json": {"schema": ref("Test", 3)}}}
    assert "parameters" not in post


def test_a_document_of_version_2_becomes_one_of_version_3() -> None:
    query = {"in": "query", "name": "limit", "type": "integer", "description": "Limit."}
    kind = {"group": "g", "version": "v1", "kind": "Test"}
    get = {
        "operationId": "list",
        "consumes": ["*/*"],
        "produces": ["application/json", "application/yaml"],
        "parameters": [query, {"in": "body", "name": "body", "schema": ref("Test")}],
        "responses": {
            "200": {"description": "OK", "schema": ref("Test")},
            "401": {"description": "No"},
        },
        "x-kubernetes-group-version-kind": kind,
    }
    piece = {"paths": {"/a": {"get": get, "parameters": [query]}},
             "definitions": {"Test": {"properties": {"inner": ref("Test")}}}}  # fmt: skip
    document = convert_to_v3(piece, {"title": "t", "version": "v"})
    limit = {"in": "query", "name": "limit", "description": "Limit.", "schema": {"type": "integer"}}
    schema = {"schema": ref("Test", 3)}
    assert document["paths"]["/a"] == {
        "get": {
            "operationId": "list",
            "parameters": [limit],
            "requestBody": {"content": {"application/json": schema}},
            "responses": {
                "200": {"description": "OK",
                        "content": {"application/json": schema, "application/yaml": schema}},
                "401": {"description": "No"},
            },
            "x-kubernetes-group-version-kind": kind,
        },
        "parameters": [limit],
    }  # fmt: skip
    assert document["components"] == {
        "schemas": {"Test": {"properties": {"inner": ref("Test", 3)}}}
    }
