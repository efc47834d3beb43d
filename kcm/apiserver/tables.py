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
_NUMBERS = {
    "replicasets.apps": frozenset({"DESIRED", "CURRENT", "READY"}),
    "events": frozenset({"COUNT"}),
}
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
        "columnDefinitions": [_definition(resource, c) for c in columns] if headers else None,
        "rows": [
            {"cells": _cells(resource, entry.obj, columns, now)} | _shown(entry.obj, form, include)
            for entry in entries
        ],
    }


def _is_number(resource: Resource, column: Column) -> bool:
    return column.title in _NUMBERS.get(resource.name, ())


def _definition(resource: Resource, column: Column) -> dict[str, Any]:
    title = column.title.title()
    return {
        "name": _TITLES.get(title, title),
        "type": "integer" if _is_number(resource, column) else "string",
        "format": "name" if column.title == "NAME" else "",
        "description": "",
        "priority": 1 if column.wide else 0,
    }


def _cells(
    resource: Resource, obj: KubeObject, columns: Sequence[Column], now: datetime
) -> list[str | int]:
    found: list[str | int] = []
    for column in columns:
        text = column.text(obj, now)
        number = text.isdecimal() and _is_number(resource, column)
        found.append(int(text) if number else text)
    return found


def _shown(obj: KubeObject, form: Form, include: str) -> dict[str, Any]:
    if include == "None":
        return {}
    return {"object": codec.to_dict(obj) if include == "Object" else partial(obj, form)}


def partial(obj: KubeObject, form: Form) -> dict[str, Any]:
    """The object's metadata alone."""
    metadata = obj.metadata.model_dump(mode="json", by_alias=True, exclude_none=True)
    return {
        "kind": "PartialObjectMetadata",
        "apiVersion": form.api_version,
        "metadata": metadata,
    }
