"""The columns of custom kinds: the name, and the columns of the definition.

Source: staging/src/k8s.io/apiextensions-apiserver/pkg/registry/customresource/tableconvertor and
pkg/apis/apiextensions/v1/defaults.go, Kubernetes 1.33.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from kcm.api import codec
from kcm.api.apiextensions_v1 import CustomResourceColumnDefinition
from kcm.api.custom.kinds import CustomObject, CustomVersion
from kcm.apiextensions import jsonpath
from kcm.apimachinery.meta_v1 import parse_time
from kcm.kinds.printing.column import NAME, NONE, Column
from kcm.kinds.printing.durations import UNKNOWN, age

_AGE = CustomResourceColumnDefinition(
    name="Age", type="date", json_path=".metadata.creationTimestamp"
)


def columns(version: CustomVersion) -> list[Column]:
    """Returns the name column, then the definition's columns, or the age if it has none."""
    return [NAME, *(_column(column) for column in version.columns or (_AGE,))]


@dataclass(frozen=True)
class DefinedColumn(Column):
    """A column of a CustomResourceDefinition."""

    source: CustomResourceColumnDefinition = field(default_factory=lambda: _AGE)

    def cell(self, obj: Any, now: datetime) -> Any:
        """Returns the value of the column for an object, in the column's type, or None."""
        return cell(obj, self.source, now)

    @property
    def described(self) -> dict[str, Any]:
        """Returns the column's entry in a Table's columnDefinitions."""
        path = self.source.json_path
        return {
            "name": self.source.name,
            "type": self.source.type,
            "format": self.source.format or "",
            "description": self.source.description
            or f"Custom resource definition column (in JSONPath format): {path}",
            "priority": self.source.priority or 0,
        }


def _column(defined: CustomResourceColumnDefinition) -> Column:
    def text(obj: CustomObject, now: datetime) -> str:
        value = cell(obj, defined, now)
        if isinstance(value, bool):
            return "true" if value else "false"
        return NONE if value is None else str(value)

    wide = bool(defined.priority)
    return DefinedColumn(defined.name, text, wide, defined.type, source=defined)


def cell(obj: CustomObject, column: CustomResourceColumnDefinition, now: datetime) -> Any:
    """Returns the value of a column for an object, None if it has none."""
    try:
        values = jsonpath.find(column.json_path, _body(obj, column.json_path))
    except jsonpath.BadPathError:
        return None
    return _format_value(values[0], column.type, now) if values else None


def _body(obj: CustomObject, path: str) -> dict[str, Any]:
    """Returns the object's JSON. Metadata is included only if the path needs it, since it is
    slow.
    """
    if "metadata" in path:
        return codec.to_dict(obj)
    return obj.content | {"apiVersion": obj.api_version, "kind": obj.kind}


def _format_value(value: Any, kind: str, now: datetime) -> Any:
    truth = isinstance(value, bool)
    match kind:
        case "string":
            return _text(value)
        case "integer" if isinstance(value, int | float) and not truth:
            return int(value)
        case "number" if isinstance(value, int | float) and not truth:
            return value
        case "boolean" if truth:
            return value
        case "date" if isinstance(value, str):
            return _age(value, now)
    return None


def _text(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def _age(text: str, now: datetime) -> str:
    try:
        since = parse_time(text)
    except ValueError:
        return "<invalid>"
    return age(since, now) if since else UNKNOWN
