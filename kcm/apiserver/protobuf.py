"""Protobuf request bodies (the `k8s\\0` envelope), for the kinds that have a table here.

client-go from 1.32 on sends typed requests so and does not retry with JSON. The
tables hold upstream's field numbers; unknown fields are skipped, as protobuf wants.

Source: the generated.proto files and
staging/src/k8s.io/apimachinery/pkg/runtime/serializer/protobuf, Kubernetes 1.33.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from kcm import errors
from kcm.api.times import format_micro_time, format_time
from kcm.apiserver.protobuf_tables import KINDS, MESSAGES, TYPES
from kcm.apiserver.refusals import UnsupportedMediaType

CONTENT_TYPE = "application/vnd.kubernetes.protobuf"

_MAGIC = b"k8s\x00"
_MAX_DEPTH = 50
_Value = int | bytes


def decode(body: bytes) -> dict[str, Any]:
    """The JSON value that the body stands for. Raises: BadRequest, UnsupportedMediaType."""
    if not body.startswith(_MAGIC):
        raise errors.BadRequest("the body is not in the protobuf envelope of Kubernetes")
    try:
        envelope = _message(body[len(_MAGIC) :], "Unknown", 0)
        meta = envelope.get("typeMeta", {})
        api_version, kind = meta.get("apiVersion", ""), meta.get("kind", "")
        name = KINDS.get((api_version, kind)) or KINDS.get(("", kind))
        if name is None:
            raise UnsupportedMediaType(
                f"{kind} in {api_version} is not accepted as protobuf yet: send JSON"
            )
        found = _message(envelope.get("raw", b""), name, 0)
    except (IndexError, ValueError, OverflowError) as error:
        raise errors.BadRequest(f"the body is not valid protobuf: {error}") from None
    return {"apiVersion": api_version, "kind": kind} | found


def _message(data: bytes, name: str, depth: int) -> dict[str, Any]:
    if depth > _MAX_DEPTH:
        raise ValueError("nested too deeply")
    table = MESSAGES[name]
    found: dict[str, Any] = {}
    for number, value in _fields(data):
        if number in table:
            _put(found, *table[number], value, depth)
    return found


def _put(found: dict[str, Any], name: str, kind: str, value: _Value, depth: int) -> None:
    if kind.startswith("[]"):
        found.setdefault(name, []).append(_value(value, kind[2:], depth))
    elif kind.startswith("map:"):
        entry = dict(_fields(_bytes(value)))
        key = _bytes(entry.get(1, b"")).decode()
        found.setdefault(name, {})[key] = _value(entry.get(2, b""), kind[4:], depth)
    else:
        decoded = _value(value, kind, depth)
        if decoded is not None:
            found[name] = decoded


def _value(value: _Value, kind: str, depth: int) -> Any:
    match kind:
        case "string":
            return _bytes(value).decode()
        case "bytes":
            return _bytes(value)
        case "bool":
            return bool(_int(value))
        case "int":
            return _signed(_int(value))
    if kind in TYPES:
        return _special(_message(_bytes(value), kind, depth + 1), kind)
    return _message(_bytes(value), kind, depth + 1)


def _special(parts: dict[str, Any], kind: str) -> Any:
    if kind == "Quantity":
        return parts.get("string", "0")
    if kind == "IntOrString":
        return parts.get("strVal", "") if parts.get("type") == 1 else parts.get("intVal", 0)
    if not parts:
        return None  # the zero time means none
    moment = datetime.fromtimestamp(parts.get("seconds", 0), UTC)
    if kind == "MicroTime":
        return format_micro_time(moment.replace(microsecond=parts.get("nanos", 0) // 1000))
    return format_time(moment)


def _fields(data: bytes) -> Iterator[tuple[int, _Value]]:
    position = 0
    while position < len(data):
        tag, position = _varint(data, position)
        number, wire = tag >> 3, tag & 7
        if wire == 0:
            value, position = _varint(data, position)
            yield number, value
            continue
        if wire == 2:
            length, position = _varint(data, position)
        elif wire in {1, 5}:
            length = 8 if wire == 1 else 4
        else:
            raise ValueError(f"wire type {wire} is not known")
        if position + length > len(data):
            raise ValueError("it ends inside a field")
        yield number, data[position : position + length]
        position += length


def _varint(data: bytes, position: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[position]
        value |= (byte & 0x7F) << shift
        position += 1
        if byte < 0x80:
            return value, position
        shift += 7
        if shift > 63:
            raise ValueError("a number is too long")


def _signed(value: int) -> int:
    return value - (1 << 64) if value >> 63 else value


def _int(value: _Value) -> int:
    if isinstance(value, int):
        return value
    raise ValueError("a number was expected")


def _bytes(value: _Value) -> bytes:
    if isinstance(value, bytes):
        return value
    raise ValueError("bytes were expected")
