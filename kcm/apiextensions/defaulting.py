"""Fills in the defaults of schemas. Nulls that the schema does not allow get the default, too, or
go if there is none; in lists they stay.

Values are not changed in place. A value that needs no defaults is returned as it is.

Source: staging/src/k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting, Kubernetes 1.36.
"""

from __future__ import annotations

import copy
from typing import Any

from kcm.api.custom.structural_schema import MISSING, StructuralSchema


def default(value: Any, schema: StructuralSchema | None) -> Any:
    """Returns a value with the defaults of its schema."""
    if schema is None:
        return value
    if isinstance(value, dict):
        return _map(value, schema)
    if isinstance(value, list) and schema.items is not None:
        items = [_replace_null(item, schema.items) for item in value]
        changed = any(new is not old for new, old in zip(items, value, strict=True))
        return items if changed else value
    return value


def _replace_null(value: Any, schema: StructuralSchema | None) -> Any:
    """Returns a value with the defaults of its schema; for a null that may not be, the default."""
    if value is None and schema is not None and not schema.nullable:
        return None if schema.default is MISSING else default(copy.deepcopy(schema.default), schema)
    return default(value, schema)


def _map(value: dict[str, Any], schema: StructuralSchema) -> dict[str, Any]:
    completed: dict[str, Any] = {}
    for name, inner in value.items():
        part = schema.field(name)
        if inner is None and part is not None and not part.nullable and part.default is MISSING:
            continue
        completed[name] = _replace_null(inner, part)
    for name, part in schema.properties.items():
        if part.default is not MISSING and name not in completed:
            completed[name] = default(copy.deepcopy(part.default), part)
    same = len(completed) == len(value) and all(
        completed[n] is value.get(n, MISSING) for n in completed
    )
    return value if same else completed
