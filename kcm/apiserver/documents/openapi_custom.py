"""The OpenAPI schemas of custom kinds.

Version 2 of OpenAPI knows neither `nullable` nor combinations of schemas, so these are left out of
it, and so are types that would be wrong without them.

Source: staging/src/k8s.io/apiextensions-apiserver/pkg/controller/openapi/{builder,v2}, Kubernetes
1.33.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_ONLY_V3 = frozenset({"nullable", "allOf", "anyOf", "oneOf", "not", "default"})
_NEVER = frozenset({"example", "externalDocs", "$schema", "id"})


def publish_schema(schema: Mapping[str, Any], *, full: bool) -> dict[str, Any]:
    """Returns a schema in the form of OpenAPI version 3 if `full`, otherwise of version 2."""
    if not full and _is_loose(schema):
        return {k: v for k, v in schema.items() if k == "description" or k.startswith("x-")}
    schema_part: dict[str, Any] = {}
    for name, value in schema.items():
        if name in _NEVER or (name in _ONLY_V3 and not full):
            continue
        schema_part[name] = _inner(name, value, full)
    return schema_part


def _is_loose(schema: Mapping[str, Any]) -> bool:
    """Reports whether version 2 has no type for a value, so that clients must not check it."""
    loose = ("x-kubernetes-int-or-string", "x-kubernetes-preserve-unknown-fields", "nullable")
    return any(schema.get(name) for name in loose)


def _inner(name: str, value: Any, full: bool) -> Any:
    if name == "properties" and isinstance(value, Mapping):
        return {key: publish_schema(inner, full=full) for key, inner in value.items()}
    if name in {"items", "additionalProperties", "not"} and isinstance(value, Mapping):
        return publish_schema(value, full=full)
    if name in {"allOf", "anyOf", "oneOf"} and isinstance(value, list):
        return [publish_schema(inner, full=full) for inner in value]
    return value
