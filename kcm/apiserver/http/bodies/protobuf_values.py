"""Converts the protobuf runtime's messages into the JSON values that Go would encode."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

from google.protobuf.message import Message

from kcm.apimachinery.meta_v1 import format_micro_time, format_time
from kcm.apiserver.http.bodies.protobuf_messages import MessageField, table

_MAX_ITEMS = 100_000  # items in one field; an empty one takes two bytes
_META = "meta/v1"  # its DeleteOptions are sent with the apiVersion of any group


def envelope(data: bytes) -> tuple[str, str, bytes]:
    """Returns apiVersion and kind of an object, and its bytes.

    Raises DecodeError and ValueError.
    """
    unknown = table().classes["runtime.Unknown"].FromString(data)
    named = _struct(unknown, "runtime.Unknown")
    return named.get("apiVersion", ""), named.get("kind", ""), unknown.f2  # type: ignore[attr-defined] # field 2: raw


def message_of(api_version: str, kind: str) -> str | None:
    """Returns the name of the message of a kind, or None."""
    fields = table().fields
    return next((m for m in (f"{api_version}.{kind}", f"{_META}.{kind}") if m in fields), None)


def parse_message(message: str, data: bytes) -> dict[str, Any]:
    """Returns the JSON value of a message's bytes.

    Raises DecodeError, ValueError and OverflowError.
    """
    return _struct(table().classes[message].FromString(data), message)


def _struct(value: Message, message: str) -> dict[str, Any]:
    """Returns the JSON value of a message.

    Raises ValueError for a field with more than _MAX_ITEMS items, before they are converted.
    """
    fields = table().fields[message]
    result: dict[str, Any] = {}
    for descriptor, part in value.ListFields():
        field = fields[descriptor.number]
        json_value = _unpack(part, field)
        if field.inline:
            result |= json_value
        elif json_value is not None and (json_value or not field.drops_zero):
            result[field.name] = json_value
    return result


def _unpack(value: Any, field: MessageField) -> Any:
    if field.container and len(value) > _MAX_ITEMS:
        raise ValueError(f"{field.name} has more than {_MAX_ITEMS} items")
    if field.container == "[]":
        return [_one(item, field.type) for item in value]
    if field.container == "map:":
        return {key: _one(item, field.type) for key, item in value.items()}
    return _one(value, field.type)


def _one(value: Any, type_: str) -> Any:
    if isinstance(value, Message):
        special = _SPECIAL.get(type_)
        return special(value) if special else _struct(value, type_)
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    return value


# --- messages whose JSON is not an object of their fields; fN is the field with number N


def _moment(value: Any) -> datetime | None:
    if not value.ListFields():
        return None  # the zero time means none
    return datetime.fromtimestamp(value.f1, UTC).replace(microsecond=value.f2 // 1000)


def _time(value: Any) -> str | None:
    moment = _moment(value)
    return format_time(moment.replace(microsecond=0)) if moment else None


def _micro_time(value: Any) -> str | None:
    moment = _moment(value)
    return format_micro_time(moment) if moment else None


def _quantity(value: Any) -> str:
    return str(value.f1) or "0"


def _int_or_string(value: Any) -> Any:
    return value.f3 if value.f1 == 1 else value.f2


def _raw(value: Any) -> Any:
    return json.loads(value.f1) if value.f1 else None


def _items(value: Any) -> list[str]:
    return list(value.f1)


def _duration(value: Any) -> str:
    return f"{value.f1 / 1e9:g}s"


def _schema_or_bool(value: Any) -> Any:
    return _struct(value.f2, _SCHEMA) if value.HasField("f2") else value.f1


def _schema_or_array(value: Any) -> Any:
    many = [_struct(single, _SCHEMA) for single in value.f2]
    return many or _struct(value.f1, _SCHEMA)


def _schema_or_names(value: Any) -> Any:
    return list(value.f2) or _struct(value.f1, _SCHEMA)


_SCHEMA = "apiextensions.k8s.io/v1.JSONSchemaProps"
_SPECIAL: Mapping[str, Callable[[Any], Any]] = {
    "meta/v1.Time": _time,
    "meta/v1.MicroTime": _micro_time,
    "meta/v1.Duration": _duration,
    "meta/v1.FieldsV1": _raw,
    "meta/v1.Verbs": _items,
    "resource.Quantity": _quantity,
    "intstr.IntOrString": _int_or_string,
    "runtime.RawExtension": _raw,
    "authentication.k8s.io/v1.ExtraValue": _items,
    "authorization.k8s.io/v1.ExtraValue": _items,
    "apiextensions.k8s.io/v1.JSON": _raw,
    "apiextensions.k8s.io/v1.JSONSchemaPropsOrBool": _schema_or_bool,
    "apiextensions.k8s.io/v1.JSONSchemaPropsOrArray": _schema_or_array,
    "apiextensions.k8s.io/v1.JSONSchemaPropsOrStringArray": _schema_or_names,
}
