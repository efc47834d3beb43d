"""Checks the types of a schema's keywords, so that later code can rely on them.

Source: JSONSchemaProps in
staging/src/k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1/types_jsonschema.go, Kubernetes
1.33.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from kcm.apimachinery.field_errors import invalid
from kcm.errors import FieldError

Check = Callable[[Any], bool]


def _text(value: Any) -> bool:
    return isinstance(value, str)


def _truth(value: Any) -> bool:
    return isinstance(value, bool)


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _list(value: Any) -> bool:
    return isinstance(value, list)


def _texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


def _struct(value: Any) -> bool:
    return isinstance(value, dict)


def _structs(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(item, dict) for item in value)


def _is_named(value: Any) -> bool:
    return isinstance(value, dict) and all(isinstance(item, dict) for item in value.values())


def _struct_or(other: Check) -> Check:
    return lambda value: isinstance(value, dict) or other(value)


_KEYWORDS: Mapping[str, tuple[Check, str]] = {
    **dict.fromkeys(("type", "format", "title", "description", "pattern"), (_text, "string")),
    **dict.fromkeys(("nullable", "uniqueItems"), (_truth, "boolean")),
    **dict.fromkeys(("exclusiveMaximum", "exclusiveMinimum"), (_truth, "boolean")),
    **dict.fromkeys(("maximum", "minimum", "multipleOf"), (_number, "number")),
    **dict.fromkeys(("maxLength", "minLength", "maxItems", "minItems"), (_whole, "integer")),
    **dict.fromkeys(("maxProperties", "minProperties"), (_whole, "integer")),
    **dict.fromkeys(("allOf", "anyOf", "oneOf"), (_structs, "array of schemas")),
    "not": (_struct, "schema"),
    "enum": (_list, "array"),
    "required": (_texts, "array of strings"),
    "properties": (_is_named, "map of schemas"),
    "items": (_struct_or(_list), "schema"),
    "additionalProperties": (_struct_or(_truth), "schema or boolean"),
    "x-kubernetes-preserve-unknown-fields": (_truth, "boolean"),
    "x-kubernetes-embedded-resource": (_truth, "boolean"),
    "x-kubernetes-int-or-string": (_truth, "boolean"),
    "x-kubernetes-list-map-keys": (_texts, "array of strings"),
    "x-kubernetes-list-type": (_text, "string"),
    "x-kubernetes-map-type": (_text, "string"),
    "x-kubernetes-validations": (_structs, "array of rules"),
}


def faults(schema: Any, path: str) -> Iterator[FieldError]:
    """Yields a fault for each keyword of a schema whose value has a wrong type."""
    if not isinstance(schema, dict):
        yield invalid(path, schema, "must be a schema object")
        return
    for name, value in schema.items():
        fits, wanted = _KEYWORDS.get(name, (None, ""))
        if fits is not None and value is not None and not fits(value):
            yield invalid(f"{path}.{name}", value, f"must be of type {wanted}")
