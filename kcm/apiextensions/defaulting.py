"""Defaults that a schema names; nulls where the schema does not allow them are dropped first.

Guarantees: nothing is changed in place; what lacks nothing is returned as it is.
Source: staging/src/k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting, Kubernetes 1.33.
"""

from __future__ import annotations

import copy
from typing import Any

from kcm.api.structural_schema import MISSING, Schema


def default(value: Any, schema: Schema | None) -> Any:
    """A value with its schema's defaults."""
    if schema is None:
        return value
    if isinstance(value, dict):
        return _map(value, schema)
    if isinstance(value, list) and schema.items is not None:
        found = [default(item, schema.items) for item in value]
        changed = any(new is not old for new, old in zip(found, value, strict=True))
        return found if changed else value
    return value


def _map(value: dict[str, Any], schema: Schema) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, inner in value.items():
        known = schema.field(name)
        if inner is None and known is not None and not known.nullable:
            continue
        found[name] = default(inner, known)
    for name, known in schema.properties.items():
        if known.default is not MISSING and name not in found:
            found[name] = default(copy.deepcopy(known.default), known)
    same = len(found) == len(value) and all(found[n] is value.get(n, MISSING) for n in found)
    return value if same else found
