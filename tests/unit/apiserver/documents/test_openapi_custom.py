"""The schemas of custom kinds in both versions of OpenAPI, as tables after upstream's."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from kcm.api import codec
from kcm.api.apiextensions_v1 import CustomResourceDefinition
from kcm.apiserver.documents import openapi_custom
from kcm.apiserver.documents.openapi_paths import paths_of
from kcm.apiserver.documents.openapi_schemas import V2, V3, Dialect, schemas_of
from kcm.apiserver.http.bodies import patches
from tests.unit.apiextensions.samples import SCHEME, definition, serve

OBJECT: dict[str, Any] = {"type": "object"}
TEXT, NUMBER = {"type": "string"}, {"type": "integer"}
BOTH = [NUMBER, TEXT]
PRESERVE = {"x-kubernetes-preserve-unknown-fields": True}
EITHER = {"x-kubernetes-int-or-string": True}
EMBEDDED = {"x-kubernetes-embedded-resource": True}
META = {"apiVersion": TEXT, "kind": TEXT, "metadata": {"$ref": "ObjectMeta"}}
LEAST = {"minimum": 42.0}

JUNCTORS: dict[str, Any] = {
    "allOf": [{"not": {"type": "boolean"}}, {"anyOf": BOTH}, {"oneOf": BOTH}, TEXT],
    "anyOf": [{"not": {"type": "boolean"}}, TEXT],
    "oneOf": [{"anyOf": BOTH}, TEXT],
    "not": {"not": {"type": "boolean"}, "anyOf": BOTH},
}


# After Test_ConvertJSONSchemaPropsToOpenAPIv2SchemaByType in
# pkg/controller/openapi/v2/conversion_test.go. What is published as it stands is None.
@pytest.mark.parametrize(
    ("schema", "published"),
    [
        ({"description": "test"}, None),
        ({"type": "test", "format": "test2"}, None),
        (OBJECT | {"nullable": True}, {}),
        (
            OBJECT
            | {
                "properties": {
                    "a": TEXT | {"nullable": True},
                    "b": TEXT | {"nullable": True},
                    "c": TEXT,
                },
                "required": ["a", "c"],
            },
            OBJECT | {"properties": {"a": {}, "b": {}, "c": TEXT}, "required": ["c"]},
        ),
        (
            OBJECT | {"additionalProperties": TEXT | {"nullable": True}, "required": ["a", "c"]},
            OBJECT | {"additionalProperties": {}},
        ),
        ({"title": "test"}, None),
        ({"default": "test"}, None),
        ({"maximum": 6.4, "exclusiveMaximum": True}, None),
        ({"minimum": 6.4, "exclusiveMinimum": True}, None),
        ({"maxLength": 64}, None),
        ({"minLength": 0}, None),
        ({"pattern": "test"}, None),
        ({"maxItems": 64, "minItems": 64}, None),
        ({"uniqueItems": True}, None),
        ({"uniqueItems": False}, {}),
        ({"multipleOf": 6.4}, None),
        ({"enum": ["test", "test2"]}, None),
        ({"maxProperties": 64, "minProperties": 64}, None),
        ({"required": ["test", "test2"]}, None),
        ({"items": {"type": "boolean"}}, None),
        ({"allOf": BOTH}, {}),
        ({"oneOf": BOTH}, {}),
        ({"anyOf": BOTH}, {}),
        ({"not": TEXT}, {}),
        (JUNCTORS, {}),
        ({"properties": {"test": {"type": "boolean"}}}, None),
        ({"additionalProperties": {"type": "boolean"}}, None),
        ({"additionalProperties": True}, None),
        ({"externalDocs": {"description": "test", "url": "test2"}}, {}),
        ({"example": "test"}, {}),
        (PRESERVE | {"type": "array", "items": TEXT}, PRESERVE),
        (PRESERVE | OBJECT | {"properties": {"foo": TEXT}}, PRESERVE | OBJECT),
    ],
    ids=str,
)
def test_version_2_has_what_kubectl_can_read(
    schema: dict[str, Any], published: dict[str, Any] | None
) -> None:
    before = json.dumps(schema)
    expected = schema if published is None else published
    assert openapi_custom.publish_schema(schema, META, full=False) == expected
    assert json.dumps(schema) == before


# After TestNewBuilder in pkg/controller/openapi/builder/builder_test.go, "with extensions" and
# "with extensions as v3 schema".
@pytest.mark.parametrize(
    ("schema", "full"),
    [
        (EITHER | {"anyOf": BOTH}, None),
        (EITHER | {"allOf": [{"anyOf": BOTH}, {"anyOf": [LEAST]}]}, None),
        (EITHER | {"anyOf": BOTH, "allOf": [{"anyOf": [LEAST]}]}, None),
        (EITHER | {"anyOf": [LEAST]}, EITHER | {"allOf": [{"anyOf": BOTH}], "anyOf": [LEAST]}),
        (
            EITHER | {"anyOf": [LEAST], "allOf": [LEAST]},
            EITHER | {"anyOf": [LEAST], "allOf": [{"anyOf": BOTH}, LEAST]},
        ),
        (EITHER, EITHER | {"anyOf": BOTH}),
    ],
    ids=str,
)
def test_integers_or_strings_name_both_types_in_version_3(
    schema: dict[str, Any], full: dict[str, Any] | None
) -> None:
    inside = OBJECT | {"properties": {"one": schema}}
    version_3 = openapi_custom.publish_schema(inside, META, full=True)
    assert version_3["properties"]["one"] == (schema if full is None else full)
    version_2 = openapi_custom.publish_schema(inside, META, full=False)
    assert version_2["properties"]["one"] == EITHER


# After TestNewBuilder, the properties "preserve-unknown-fields" and "embedded-object".
def test_objects_within_objects_have_metadata_unless_that_would_hide_their_fields() -> None:
    named = {"properties": META, "required": ["kind", "apiVersion"]}
    loose, strict = EMBEDDED | PRESERVE | OBJECT, EMBEDDED | OBJECT
    assert openapi_custom.publish_schema(PRESERVE, META, full=False) == PRESERVE
    assert openapi_custom.publish_schema(loose, META, full=False) == loose
    assert openapi_custom.publish_schema(loose, META, full=True) == loose | named
    assert openapi_custom.publish_schema(strict, META, full=False) == strict | named
    inside = {"items": strict | {"required": ["kind"], "properties": {"spec": OBJECT}}}
    assert openapi_custom.publish_schema(inside, META, full=False) == {
        "items": strict
        | {"properties": {"spec": OBJECT, **META}, "required": ["kind", "apiVersion"]}
    }


def without_descriptions(schema: dict[str, Any]) -> dict[str, Any]:
    """Returns a schema with the three fields of every object stripped of their descriptions."""
    for name in META.keys() & schema.get("properties", {}).keys():
        schema["properties"][name].pop("description")
    return schema


def published(schema: dict[str, Any], dialect: Dialect) -> dict[str, Any]:
    """Returns the schema of a kind CronTab with this schema at its root."""
    with serve(definition(v1=schema)):
        schemas = schemas_of([SCHEME.by_name("crontabs.example.com")], dialect)
    return without_descriptions(schemas["com.example.v1.CronTab"])


def with_meta(dialect: Dialect, **more: Any) -> dict[str, Any]:
    meta = {"$ref": f"{dialect.refs}io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"}
    metadata = meta if dialect is V2 else {"allOf": [meta]}
    return OBJECT | {"properties": {**more, "apiVersion": TEXT, "kind": TEXT, "metadata": metadata}}


KIND = {
    "x-kubernetes-group-version-kind": [
        {"group": "example.com", "version": "v1", "kind": "CronTab"}
    ]
}
CHOICE = TEXT | {"oneOf": [{"pattern": "a"}, {"pattern": "b"}]}


# After TestNewBuilder and TestBuildSwagger (TestBuildOpenAPIV2) in builder_test.go.
@pytest.mark.parametrize(
    ("schema", "dialect", "wanted"),
    [
        (
            OBJECT | {"properties": {"spec": OBJECT, "status": OBJECT}},
            V2,
            with_meta(V2, spec=OBJECT, status=OBJECT),
        ),
        (OBJECT, V2, with_meta(V2)),
        (OBJECT, V3, with_meta(V3)),
        (OBJECT | PRESERVE, V2, OBJECT),
        (OBJECT | PRESERVE | {"properties": {"foo": TEXT}}, V2, OBJECT),
        (OBJECT | PRESERVE, V3, with_meta(V3) | PRESERVE),
        (OBJECT | PRESERVE | {"properties": {"foo": TEXT}}, V3, with_meta(V3, foo=TEXT) | PRESERVE),
        (OBJECT | {"properties": {"foo": CHOICE}}, V2, with_meta(V2, foo=TEXT)),
        (OBJECT | {"properties": {"foo": CHOICE}}, V3, with_meta(V3, foo=CHOICE)),
    ],
)
def test_the_root_of_a_kind(
    schema: dict[str, Any], dialect: Dialect, wanted: dict[str, Any]
) -> None:
    assert published(schema, dialect) == wanted | KIND


def scalable(scope: str) -> CustomResourceDefinition:
    body = codec.to_dict(definition(v1=OBJECT))
    body["spec"]["scope"] = scope
    paths = {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}
    body["spec"]["versions"][0]["subresources"]["scale"] = paths
    decoded = codec.decode(body, SCHEME)
    assert isinstance(decoded, CustomResourceDefinition)
    return decoded


def operations(scope: str, dialect: Dialect) -> Iterator[tuple[str, str, dict[str, Any]]]:
    with serve(scalable(scope)):
        paths = paths_of(SCHEME.by_name("crontabs.example.com"), dialect)
    for path, item in paths.items():
        for operation in (one for name, one in item.items() if name != "parameters"):
            assert operation.get("parameters") != []  # which clients that write it again leave out
            parameters = [*item["parameters"], *operation.get("parameters", ())]
            yield path, operation["x-kubernetes-action"], operation | {"parameters": parameters}


ONE = {"get", "put", "patch"}
ALL = {"list", "post", "deletecollection"}
BASE = "/apis/example.com/v1"


# After TestCRDRouteParameterBuilder in builder_test.go.
@pytest.mark.parametrize(
    ("scope", "inside", "lists"),
    [
        ("Namespaced", f"{BASE}/namespaces/{{namespace}}/crontabs", {f"{BASE}/crontabs": {"list"}}),
        ("Cluster", f"{BASE}/crontabs", {}),
    ],
)
def test_the_operations_on_a_kind(scope: str, inside: str, lists: dict[str, set[str]]) -> None:
    found: dict[str, set[str]] = {}
    for path, action, operation in operations(scope, V2):
        found.setdefault(path, set()).add(action)
        refs = {parameter.get("$ref") for parameter in operation["parameters"]}
        for name in ("namespace", "name"):
            assert (f"#/parameters/{name}" in refs) == (f"{{{name}}}" in path)
        if action == "patch":
            takes = [patches.JSON_PATCH, patches.MERGE_PATCH, patches.APPLY]
            assert operation["consumes"] == takes
    assert found == lists | {
        inside: ALL,
        f"{inside}/{{name}}": ONE | {"delete"},
        f"{inside}/{{name}}/scale": ONE,
        f"{inside}/{{name}}/status": ONE,
    }
