"""Server-side tables, which `kubectl get` prints.

Source: staging/src/k8s.io/apiserver/pkg/endpoints/handlers/response.go and
pkg/printers/internalversion/printers.go, Kubernetes 1.33.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from kcm import errors
from kcm.api import codec
from kcm.api.core_v1 import Pod
from kcm.api.scheme import Resource
from kcm.apimachinery.meta_v1 import KubeObject
from kcm.apiserver.cache.entries import Entry
from kcm.apiserver.http.responses import Form
from kcm.kinds.descriptions import describe_column
from kcm.kinds.printing.columns import Column, columns_of, convert_for_columns
from kcm.kinds.printing.custom import DefinedColumn

_INCLUDE = ("", "Metadata", "Object", "None")
# The message of the row's condition Completed, by the phase of an ended pod.
_COMPLETED = {
    "Succeeded": "The pod has completed successfully.",
    "Failed": "The pod failed.",
}


def check_include(word: str) -> None:
    """Raises BadRequest for an unknown value of includeObject."""
    if word not in _INCLUDE:
        fault = errors.FieldError(
            "Invalid value",
            "includeObject",
            errors.shorten(word),
            "must be 'Metadata', 'Object', 'None', or empty",
        )
        raise errors.BadRequest(f"Unable to convert to Table as requested: {fault}")


def table(
    resource: Resource,
    entries: Sequence[Entry],
    form: Form,
    include: str,
    meta: Mapping[str, Any],
    *,
    headers: bool = True,
) -> dict[str, Any]:
    """Returns the entries as a Table. Raises BadRequest.

    `include` is the value of includeObject, `meta` the Table's metadata. Without `headers`, the
    Table has no column definitions.
    """
    check_include(include)
    columns, now = columns_of(resource, wide=True), datetime.now(UTC)
    rows = [
        _row(convert_for_columns(entry.obj), columns, now) | _row_content(entry.obj, form, include)
        for entry in entries
    ]
    return {
        "kind": "Table",
        "apiVersion": form.api_version,
        "metadata": meta,
        "columnDefinitions": [_definition(resource, c) for c in columns] if headers else None,
        "rows": rows,
    }


def _definition(resource: Resource, column: Column) -> dict[str, Any]:
    if isinstance(column, DefinedColumn):
        return column.described
    return {
        "name": column.title,
        "type": column.type,
        "format": "name" if column.title == "Name" else "",
        "description": describe_column(resource.kind, column.title),
        "priority": 1 if column.wide else 0,
    }


def _row(obj: KubeObject, columns: Sequence[Column], now: datetime) -> dict[str, Any]:
    row: dict[str, Any] = {"cells": [column.cell(obj, now) for column in columns]}
    if isinstance(obj, Pod) and (conditions := _COMPLETED.get(obj.status.phase or "")):
        completed = {"type": "Completed", "status": "True", "reason": obj.status.phase}
        row["conditions"] = [completed | {"message": conditions}]
    return row


def _row_content(obj: KubeObject, form: Form, include: str) -> dict[str, Any]:
    if include == "None":
        return {}
    return {"object": codec.to_dict(obj) if include == "Object" else partial_metadata(obj, form)}


def row_object(include: str, whole: Mapping[str, Any], part: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the field `object` of the row of an object that is not stored, as `include` asks.

    Raises BadRequest.
    """
    check_include(include)
    return {} if include == "None" else {"object": whole if include == "Object" else part}


def partial_metadata(obj: KubeObject, form: Form) -> dict[str, Any]:
    """Returns the object's metadata as PartialObjectMetadata."""
    metadata = obj.metadata.model_dump(mode="json", by_alias=True, exclude_none=True)
    return {
        "kind": "PartialObjectMetadata",
        "apiVersion": form.api_version,
        "metadata": metadata,
    }
