"""Validation of the fields that field selectors over a custom kind may use.

Source: ValidateCustomResourceSelectableFields in
staging/src/k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation/validation.go and
ValidFieldPath in pkg/apiserver/schema/cel/validation.go, Kubernetes 1.33.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from kcm.api.apiextensions_v1 import SelectableField
from kcm.apimachinery.field_errors import Faults, duplicate, invalid, required, too_many

MOST = 8
_TYPES = ("string", "boolean", "integer")
_WRONG_TYPE = (
    "must point to a field of type string, boolean or integer. "
    "Enum string fields and strings with formats are allowed."
)
_NO_FIELD = "does not refer to a valid field"
_TOKEN = re.compile(r"[.\[\]]|'.*?(?<!\\)'|'.*|[^.\[\]]+", re.DOTALL)
_SHOWN = 256  # characters of a token in an error


class _WrongPathError(ValueError):
    """The path is not one of fields alone, or leads to no field of the schema."""


def check(fields: Sequence[SelectableField], schema: Mapping[str, Any], path: str) -> Faults:
    """Returns what is wrong with `selectableFields`, which is at `path`.

    `schema` is the structural schema of the version.
    """
    faults: Faults = []
    seen: set[tuple[str, ...]] = set()
    for index, field in enumerate(fields):
        where, value = f"{path}[{index}].jsonPath", field.json_path
        if not value:
            faults.append(required(where))
            continue
        try:
            names, found = _follow(value, schema)
        except _WrongPathError as error:
            faults.append(invalid(where, value, f"is an invalid path: {error}"))
            continue
        if names[0] == "metadata":
            faults.append(invalid(where, value, "must not point to fields in metadata"))
        if found.get("type") not in _TYPES:
            faults.append(invalid(where, value, _WRONG_TYPE))
        if names in seen:
            faults.append(duplicate(where, value))
        seen.add(names)
    if len(seen) > MOST:
        faults.append(too_many(path, len(seen), MOST))
    return faults


def _follow(path: str, schema: Mapping[str, Any]) -> tuple[tuple[str, ...], Mapping[str, Any]]:
    """Returns the names of the fields on a path such as `.spec.color`, and the last one's schema.

    Raises _WrongPathError.
    """
    names: list[str] = []
    tokens = iter(_TOKEN.findall(path))
    for token in tokens:
        if token == "[":
            raise _WrongPathError("array notation is not allowed")
        if token != ".":
            raise _WrongPathError(f"expected [ or . but got: {token[:_SHOWN]}")
        name = next(tokens, None)
        if name is None:
            raise _WrongPathError("unexpected end of JSON path")
        schema = _step(schema, name)
        names.append(name)
    return tuple(names), schema


def _step(schema: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """Returns the schema of a field, or of a map's values. Raises _WrongPathError."""
    properties = schema.get("properties")
    inner = schema.get("additionalProperties")
    if properties is not None:
        inner = properties.get(name) if isinstance(properties, Mapping) else None
    if not isinstance(inner, Mapping):
        raise _WrongPathError(_NO_FIELD)
    return inner
