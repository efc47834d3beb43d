"""Encodes JSON values as protobuf, as client-go does."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from datetime import datetime
from typing import Any

from google.protobuf.message import Message

from kcm.apiserver.bodies.protobuf_messages import MessageField, table

_JSON = {"runtime.RawExtension", "meta/v1.FieldsV1", "apiextensions.k8s.io/v1.JSON"}
_OR = "apiextensions.k8s.io/v1.JSONSchemaPropsOr"
_SCHEMA = "apiextensions.k8s.io/v1.JSONSchemaProps"


def encode_body(manifest: dict[str, Any], message: str) -> bytes:
    """Returns an object in the envelope of Kubernetes' protobuf."""
    unknown: Any = table().classes["runtime.Unknown"]()  # a class of run time: its fields, too
    unknown.f1.f1, unknown.f1.f2 = manifest["apiVersion"], manifest["kind"]
    rest = {k: v for k, v in manifest.items() if k not in {"apiVersion", "kind"}}
    unknown.f2 = encode(rest, message).SerializeToString()
    envelope: bytes = unknown.SerializeToString()
    return b"k8s\x00" + envelope


def encode(value: dict[str, Any], message: str) -> Any:
    """Returns a struct as a message of the runtime; a field without a number fails."""
    out = table().classes[message]()
    rest = dict(value)
    for field in table().fields[message].values():
        if field.inline:
            names = set(_names(field.type))
            inner = {name: rest.pop(name) for name in names & rest.keys()}
            getattr(out, f"f{field.number}").CopyFrom(encode(inner, field.type))
        elif field.name in rest:
            _put(out, field, rest.pop(field.name))
    assert not rest, f"{message} has no numbers for {sorted(rest)}"
    return out


def _names(message: str) -> Iterator[str]:
    """Yields the names in JSON of a message's fields, those of inline structs included."""
    for field in table().fields[message].values():
        if field.inline:
            yield from _names(field.type)
        else:
            yield field.name


def _put(out: Message, field: MessageField, value: Any) -> None:
    place = f"f{field.number}"
    if field.container == "[]":
        getattr(out, place).extend(_encode_value(item, field.type) for item in value)
    elif field.container == "map:":
        for key, item in value.items():
            one = _encode_value(item, field.type)
            if isinstance(one, Message):
                getattr(out, place)[key].CopyFrom(one)
            else:
                getattr(out, place)[key] = one
    else:
        one = _encode_value(value, field.type)
        if isinstance(one, Message):
            getattr(out, place).CopyFrom(one)
        else:
            setattr(out, place, one)


def _encode_value(value: Any, type_: str) -> Any:
    if type_ == "bytes":
        return base64.b64decode(value)
    if "." not in type_:
        return value
    new = table().classes[type_]
    if type_ in _JSON:
        return new(f1=json.dumps(value).encode())
    if type_ == "resource.Quantity":
        return new(f1=value)
    if type_ == "intstr.IntOrString":
        return new(f1=0, f2=value) if isinstance(value, int) else new(f1=1, f3=value)
    if type_ in {"meta/v1.Time", "meta/v1.MicroTime"}:
        moment = datetime.fromisoformat(value)
        return new(f1=int(moment.timestamp()), f2=moment.microsecond * 1000)
    if type_ == f"{_OR}Bool":
        return new(f1=value) if isinstance(value, bool) else new(f2=encode(value, _SCHEMA))
    if type_ == f"{_OR}Array":
        return new(f1=encode(value, _SCHEMA))
    return encode(value, type_)
