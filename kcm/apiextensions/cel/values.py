"""Converts JSON values to CEL values: types by the schema, and escaped field names.

Source: staging/src/k8s.io/apiserver/pkg/cel/{escaping,common/values}.go, Kubernetes 1.33.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any

from kcm.api.custom.structural_schema import StructuralSchema
from kcm.apimachinery.durations import parse_fine_seconds

_RESERVED = frozenset(
    {
        "true", "false", "null", "in", "as", "break", "const", "continue", "else", "for",
        "function", "if", "import", "let", "loop", "package", "namespace", "return", "var",
        "void", "while",
    }
)  # fmt: skip
_ESCAPES = {"__": "__underscores__", ".": "__dot__", "-": "__dash__", "/": "__slash__"}
_SPECIAL = re.compile(r"__|[.\-/]")
_META = ("name", "generateName")


def to_cel(value: Any, schema: StructuralSchema | None, *, root: bool = False) -> Any:
    """Returns a JSON value as the value of a CEL variable.

    Of an object's metadata, rules see only name and generateName.
    """
    if isinstance(value, dict):
        return _map(value, schema, root=root)
    if isinstance(value, list):
        inner = schema.items if schema is not None else None
        return [to_cel(item, inner) for item in value]
    if schema is None:
        return value
    if isinstance(value, int) and not isinstance(value, bool) and schema.type == "number":
        return float(value)
    if isinstance(value, float) and schema.type == "integer":
        return int(value)
    if isinstance(value, str):
        return _text(value, str(schema.raw.get("format") or ""))
    return value


def _map(value: dict[str, Any], schema: StructuralSchema | None, *, root: bool) -> dict[str, Any]:
    if schema is None:
        return {name: to_cel(inner, None) for name, inner in value.items()}
    converted: dict[str, Any] = {}
    for name, inner in value.items():
        if name == "metadata" and (root or schema.embedded) and not describes_itself(schema):
            converted[name] = {n: inner[n] for n in _META if n in inner}
        elif name in schema.properties:
            if inner is not None:  # as upstream, a field that is null is absent
                field = to_cel(inner, schema.properties[name])
                converted.update((spelling, field) for spelling in spell_names(name))
        elif schema.additional is not None or schema.open:
            converted[name] = to_cel(inner, schema.additional)
        elif root or schema.embedded or schema.preserve:
            converted[name] = to_cel(inner, None)
    return converted


def describes_itself(schema: StructuralSchema) -> bool:
    """Reports whether the schema of an object has what it would be given otherwise."""
    metadata = schema.properties.get("metadata")
    return (
        metadata is not None
        and {"kind", "apiVersion"} <= schema.properties.keys()
        and {*_META} <= metadata.properties.keys()
    )


def in_order_of(old: Any, new: Any, schema: StructuralSchema) -> Any:
    """Returns the old value, whose sets and lists of type map have the order of the new ones.

    Their order means nothing, and the library compares them as lists. Only those with the same
    items, or the same keys, get another order.
    """
    if isinstance(old, dict) and isinstance(new, dict):
        return {
            name: inner
            if (field := schema.field(name)) is None or name not in new
            else in_order_of(inner, new[name], field)
            for name, inner in old.items()
        }
    if not isinstance(old, list) or not isinstance(new, list) or schema.items is None:
        return old
    if schema.list_type == "atomic" or old == new:
        return old
    keys = schema.list_keys if schema.list_type == "map" else ()
    places = {_identify(item, keys): place for place, item in enumerate(new)}
    is_unlike = any(_identify(item, keys) not in places for item in old)
    if is_unlike or not len(old) == len(new) == len(places):
        return old
    ordered = sorted(old, key=lambda item: places[_identify(item, keys)])
    pairs = zip(ordered, new, strict=True)
    return [in_order_of(item, other, schema.items) for item, other in pairs]


def _identify(item: Any, keys: tuple[str, ...]) -> str:
    """Returns a text that two items of a set, or of a list with these keys, have in common if they
    are the same.
    """
    identity = [item.get(key) for key in keys] if keys and isinstance(item, dict) else item
    return json.dumps(identity, sort_keys=True)


@lru_cache(maxsize=4096)
def spell_names(name: str) -> tuple[str, ...]:
    """Returns the names under which expressions can access a field: two for a reserved word."""
    if name in _RESERVED:
        return f"__{name}__", name
    return (_SPECIAL.sub(lambda match: _ESCAPES[match[0]], name),)


def _text(value: str, form: str) -> Any:
    read = _FORMS.get(form)
    if read is None:
        return value
    try:
        return read(value)
    except (ValueError, OverflowError):  # a value beyond datetime or timedelta stays text
        return value


def _moment(text: str) -> Any:
    from google.protobuf.timestamp_pb2 import Timestamp  # noqa: PLC0415 - see `expressions`

    moment = datetime.fromisoformat(text)
    timestamp = Timestamp()
    timestamp.FromDatetime(moment if moment.tzinfo else moment.replace(tzinfo=UTC))
    return timestamp


def _span(text: str) -> Any:
    from google.protobuf.duration_pb2 import Duration  # noqa: PLC0415 - see `expressions`

    duration = Duration()
    duration.FromTimedelta(timedelta(seconds=parse_fine_seconds(text)))
    return duration


def _bytes(text: str) -> bytes:
    return base64.b64decode(text, validate=True)


_FORMS: Mapping[str, Callable[[str], Any]] = {
    "date-time": _moment,
    "date": _moment,
    "duration": _span,
    "byte": _bytes,
}
