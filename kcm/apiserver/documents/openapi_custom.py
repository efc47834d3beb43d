"""The OpenAPI schemas of custom kinds.

Version 3 has what the definition has. Version 2 knows neither `nullable` nor combinations of
schemas, and kubectl takes the fields that it names for all that there are. So what may have further
fields is published there without any.

Source: staging/src/k8s.io/apiextensions-apiserver/pkg/controller/openapi/{builder,v2} and
pkg/apiserver/schema/{unfold,kubeopenapi}.go, Kubernetes 1.33.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Json = Mapping[str, Any]
Schema = dict[str, Any]

_PRESERVE = "x-kubernetes-preserve-unknown-fields"
_EMBEDDED = "x-kubernetes-embedded-resource"
_INT_OR_STRING = "x-kubernetes-int-or-string"
_COMBINATIONS = frozenset({"allOf", "anyOf", "oneOf", "not"})
_NEVER = frozenset({"example", "externalDocs", "$schema", "id"})
_NUMBER_OR_TEXT = [{"type": "integer"}, {"type": "string"}]
_META = ("apiVersion", "kind", "metadata")
_ALWAYS_THERE = ("kind", "apiVersion")


def publish_schema(schema: Json, meta: Json, *, full: bool) -> Schema:
    """Returns a structural schema in the form of OpenAPI version 3 if `full`, otherwise of 2.

    `meta` are the schemas of apiVersion, kind and metadata, which objects within objects get.
    """
    return _embed(_version_3(schema) if full else _version_2(schema), meta, full)


def _version_3(schema: Json) -> Schema:
    """Returns the schema with the types of integers or strings spelled out."""
    published = _map_inner(_keep_published(schema), _version_3)
    if not published.get(_INT_OR_STRING) or _names_both_types(published):
        return published
    if "anyOf" not in published:
        return published | {"anyOf": [dict(kind) for kind in _NUMBER_OR_TEXT]}
    either = {"anyOf": [dict(kind) for kind in _NUMBER_OR_TEXT]}
    return published | {"allOf": [either, *published.get("allOf", ())]}


def _names_both_types(schema: Json) -> bool:
    """Reports whether `anyOf`, or that of the first of `allOf`, has the two types."""
    first: Json = next(iter(schema.get("allOf") or ()), {})
    return _NUMBER_OR_TEXT in (schema.get("anyOf"), first.get("anyOf"))


def _version_2(schema: Json) -> Schema:
    published = {
        key: value for key, value in _keep_published(schema).items() if key not in _COMBINATIONS
    }
    nullable = published.pop("nullable", False)
    if nullable:
        published.pop("type", None)
    if nullable or published.get(_PRESERVE):
        published.pop("items", None)
        published.pop("properties", None)
    if "items" not in published and published.get("type") == "array":
        del published["type"]
    _forget_nullable(published)
    return _map_inner(published, _version_2)


def _forget_nullable(schema: Schema) -> None:
    """Removes from `required` the fields that may be null, which version 2 cannot say."""
    properties, values = schema.get("properties", {}), schema.get("additionalProperties")
    required = [
        name for name in schema.get("required", ()) if not properties.get(name, {}).get("nullable")
    ]
    if isinstance(values, Mapping) and values.get("nullable"):
        required = []
    schema.pop("required", None)
    if required:
        schema["required"] = required


def _keep_published(schema: Json) -> Schema:
    """Returns what is published of a schema: no examples, and nothing that is empty or false."""
    return {
        key: value
        for key, value in schema.items()
        if key not in _NEVER and _says_something(key, value)
    }


def _says_something(key: str, value: Any) -> bool:
    if key in ("default", "additionalProperties"):
        return value is not None
    return value is not False and value not in (None, "", [], {})


def _map_inner(schema: Schema, publish: Any) -> Schema:
    """Returns the schema with those of its fields, items and values published."""
    if isinstance(schema.get("properties"), Mapping):
        fields = schema["properties"].items()
        schema["properties"] = {name: publish(inner) for name, inner in fields}
    for key in ("items", "additionalProperties"):
        if isinstance(schema.get(key), Mapping):
            schema[key] = publish(schema[key])
    return schema


def _embed(schema: Schema, meta: Json, full: bool) -> Schema:
    """Returns the schema in which objects within objects have apiVersion, kind and metadata."""
    schema = _map_inner(schema, lambda inner: _embed(inner, meta, full))
    if not schema.get(_EMBEDDED) or (schema.get(_PRESERVE) and not full):
        return schema
    named = schema.get("required", [])
    missing = [name for name in _ALWAYS_THERE if name not in named]
    properties = {**schema.get("properties", {}), **{name: meta[name] for name in _META}}
    return schema | {"properties": properties, "required": [*named, *missing]}
