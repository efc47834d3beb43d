"""How large values can be: those that a schema describes, and those that expressions make of them.

The size of a text is its characters, that of a list or map its items. What has no limit in the
schema is limited by the size of a request.

Source: staging/src/k8s.io/apiserver/pkg/cel/{common/schemas.go,limits.go,types.go} and SizeEstimate
in checker/cost.go of https://github.com/google/cel-go.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from kcm.api.custom.structural_schema import MISSING, StructuralSchema
from kcm.apiextensions.cel.type_checking import with_object_fields
from kcm.apiextensions.cel.values import spell_names

ENDLESS = 2**64 - 1
_REQUEST = 3 * 1024 * 1024  # the most bytes of a request
_TEXTS = {"duration": (3, 32), "date": (12, 12), "date-time": (21, 32)}  # formats: bytes in JSON
_LEAST_BYTES = {"boolean": 4, "number": 1, "integer": 1}
_EMPTY = 2  # bytes of "", [] and {}
_BYTES_OF_CHARACTER = 4
_ROOM = _REQUEST - _EMPTY


class Size(NamedTuple):
    """The least and the most that a value can have."""

    least: int = 0
    most: int = ENDLESS

    def plus(self, other: Size) -> Size:
        return Size(add(self.least, other.least), add(self.most, other.most))

    def times(self, other: Size) -> Size:
        return Size(multiply(self.least, other.least), multiply(self.most, other.most))

    def union(self, other: Size) -> Size:
        return Size(min(self.least, other.least), max(self.most, other.most))


UNKNOWN = Size()
SCALAR = Size(1, 1)


def add(*numbers: int) -> int:
    """Returns the sum, at most ENDLESS."""
    return min(sum(numbers), ENDLESS)


def multiply(number: int, factor: float) -> int:
    """Returns the product, rounded up, at most ENDLESS."""
    if isinstance(factor, int):
        return min(number * factor, ENDLESS)
    return ENDLESS if number * factor >= ENDLESS else math.ceil(number * factor)


@dataclass(frozen=True, eq=False)
class Described:
    """What a schema says of the size of a value and of those in it."""

    kind: str  # list, map, object, string, bytes, int-or-string or scalar
    most: int = 0
    least_bytes: int = 0  # of its JSON
    item: Described | None = None
    fields: Mapping[str, Described] = field(default_factory=dict)

    @property
    def size(self) -> Size:
        return Size(0, self.most)

    @property
    def most_often(self) -> int:
        """The most such values that a request has room for, each with a comma."""
        return _REQUEST // (self.least_bytes + 1)


_KEY = Described("string", 0, _EMPTY)


def key_of(described: Described) -> Described | None:
    """Returns what is known of the keys of a map, None for other values."""
    return _KEY if described.kind == "map" else None


class Describer:
    """Reads what schemas say of the sizes of values, each schema once."""

    def __init__(self) -> None:
        self._read: dict[StructuralSchema, Described | None] = {}

    def describe(self, schema: StructuralSchema, *, root: bool = False) -> Described | None:
        """Returns what a schema says, None if expressions may not read its values.

        `root` says that it is the schema of whole objects, whose names may be read.
        """
        if schema not in self._read:
            self._read[schema] = self._describe(schema, root)
        return self._read[schema]

    def _describe(self, schema: StructuralSchema, root: bool) -> Described | None:
        raw, inner = schema.raw, schema.items if schema.type == "array" else schema.additional
        if schema.int_or_string:
            most = _limit(raw, "maxLength", _ROOM, _BYTES_OF_CHARACTER)
            return Described("int-or-string", most, 1)
        if schema.type == "array" or (schema.type == "object" and inner is not None):
            item = self.describe(inner) if inner is not None else None
            return None if item is None else _describe_items(schema, item)
        if schema.type == "object":
            whole = with_object_fields(schema) if root or schema.embedded else schema
            return self._describe_object(whole)
        if schema.type == "string":
            return _describe_text(raw)
        least = _LEAST_BYTES.get(schema.type)
        return None if least is None else Described("scalar", 0, least)

    def _describe_object(self, schema: StructuralSchema) -> Described:
        fields: dict[str, Described] = {}
        least, required = _EMPTY, frozenset(schema.raw.get("required") or ())
        for name, inner in schema.properties.items():
            described = self.describe(inner)
            if described is None:
                continue
            fields |= dict.fromkeys((name, *spell_names(name)), described)
            if name in required and inner.default is MISSING:
                least += len(name.encode(errors="replace")) + described.least_bytes + 4
        return Described("object", 0, least, fields=fields)


def _describe_items(schema: StructuralSchema, item: Described) -> Described:
    if schema.type == "array":
        most = _limit(schema.raw, "maxItems", _ROOM // (item.least_bytes + 1))
        return Described("list", most, _EMPTY, item)
    most = _ROOM // (item.least_bytes + 6)  # with a key of two letters
    return Described("map", _limit(schema.raw, "maxProperties", most), _EMPTY, item)


def _describe_text(raw: Mapping[str, Any]) -> Described:
    form = raw.get("format")
    if form in _TEXTS:
        least, most = _TEXTS[form]
        return Described("scalar", most, least)
    if form == "byte":
        return Described("bytes", _limit(raw, "maxLength", _ROOM), _EMPTY)
    most = _ROOM
    if raw.get("maxLength") is None and raw.get("enum"):
        texts = (one for one in raw["enum"] if isinstance(one, str))
        most = max((len(one.encode(errors="replace")) for one in texts), default=0)
    most = _limit(raw, "maxLength", most, _BYTES_OF_CHARACTER)
    return Described("string", most, _EMPTY)


def _limit(raw: Mapping[str, Any], name: str, otherwise: int, factor: int = 1) -> int:
    limit = raw.get(name)
    return otherwise if limit is None else max(int(limit), 0) * factor
