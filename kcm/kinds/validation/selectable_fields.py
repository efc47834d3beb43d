"""Validation of the fields that field selectors over a custom kind may use.

Source: ValidateCustomResourceSelectableFields in
staging/src/k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation/validation.go,
Kubernetes 1.36.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kcm.api.apiextensions_v1 import SelectableField
from kcm.apiextensions import field_paths
from kcm.apimachinery.field_errors import Faults, duplicate, invalid, required, too_many

MOST = 8
_TYPES = ("string", "boolean", "integer")
_WRONG_TYPE = (
    "must point to a field of type string, boolean or integer. "
    "Enum string fields and strings with formats are allowed."
)


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
            names, found = field_paths.follow(value, schema, arrays=False)
        except field_paths.WrongPathError as error:
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
