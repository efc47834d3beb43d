"""Server-side tables: what `kubectl get` prints.

Source: staging/src/k8s.io/apiserver/pkg/endpoints/handlers/response.go and
pkg/printers/internalversion/printers.go, Kubernetes 1.33.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from kcm import errors
from kcm.api import codec
from kcm.api.meta_v1 import KubeObject
from kcm.api.printing.columns import Column, columns_of
from kcm.api.scheme import Resource
from kcm.apiserver.accept import Form
from kcm.apiserver.cache import Entry

_INCLUDE = ("", "Metadata", "Object", "None")
_NUMBERS = frozenset({"DESIRED", "CURRENT", "COUNT"})
_UPPER = {"Ip": "IP", "Os": "OS", "Internal-Ip": "Internal-IP", "External-Ip": "External-IP"}
_TITLES = _UPPER | {"Os-Image": "OS-Image"}


def check_include(word: str) -> None:
    """Raise BadRequest for an includeObject that there is not."""
    if word not in _INCLUDE:
        raise errors.BadRequest(f"unrecognized includeObject value: {word!r}")


def table(
    resource: Resource,
    entries: Sequence[Entry],
    form: Form,
    include: str,
    meta: Mapping[str, Any],
    *,
    headers: bool = True,
) -> dict[str, Any]:
    """The entries as a Table. Raises BadRequest."""
    check_include(include)
    columns, now = columns_of(resource, wide=True), datetime.now(UTC)
    return {
        "kind": "Table",
        "apiVersion": form.api_version,
        "metadata": meta,
        "columnDefinitions": [_definition(column) for column in columns] if headers else None,
        "rows": [_row(entry, columns, now, form, include) for entry in entries],
    }


def _definition(column: Column) -> dict[str, Any]:
    title = column.title.title()
    return {
        "name": _TITLES.get(title, title),
        "type": "integer" if column.title in _NUMBERS else "string",
        "format": "name" if column.title == "NAME" else "",
        "description": "",
        "priority": 1 if column.wide else 0,
    }


def _row(
    entry: Entry, columns: Sequence[Column], now: datetime, form: Form, include: str
) -> dict[str, Any]:
    obj = entry.obj
    cells = [_cell(column, column.text(obj, now)) for column in columns]
    if include == "None":
        return {"cells": cells}
    shown = codec.to_dict(obj) if include == "Object" else partial(obj, form)
    return {"cells": cells, "object": shown}


def _cell(column: Column, text: str) -> str | int:
    return int(text) if column.title in _NUMBERS and text.isdecimal() else text


def partial(obj: KubeObject, form: Form) -> dict[str, Any]:
    """The object's metadata alone."""
    metadata = obj.metadata.model_dump(mode="json", by_alias=True, exclude_none=True)
    return {
        "kind": "PartialObjectMetadata",
        "apiVersion": form.api_version,
        "metadata": metadata,
    }
