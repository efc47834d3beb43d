"""Encodes JSON values as protobuf, in the envelope of Kubernetes.

Source: staging/src/k8s.io/apimachinery/pkg/runtime/serializer/protobuf, Kubernetes 1.36.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Mapping
from datetime import datetime
from functools import cache
from typing import Any

from google.protobuf.message import Message

from kcm.apimachinery.durations import parse_seconds
from kcm.apiserver.http.bodies.protobuf_messages import MessageField, table

_JSON = {"runtime.RawExtension", "meta/v1.FieldsV1", "apiextensions.k8s.io/v1.JSON"}
_LISTS = {
    "meta/v1.Verbs", "authentication.k8s.io/v1.ExtraValue", "authorization.k8s.io/v1.ExtraValue",
}  # fmt: skip
_METADATA, _ITEM = b"\x0a", b"\x12"  # the tags of fields 1 and 2, which have lengths
_OR = "apiextensions.k8s.io/v1.JSONSchemaPropsOr"
_SCHEMA = "apiextensions.k8s.io/v1.JSONSchemaProps"


def encode_body(manifest: Mapping[str, Any], message: str) -> bytes:
    """Returns an object in the envelope of Kubernetes' protobuf."""
    return _wrap(manifest, encode(manifest, message).SerializeToString())


def encode_list(listed: Mapping[str, Any], message: str) -> bytes:
    """Returns a list of objects of a message in the envelope. All lists have their metadata as
    field 1 and their items as field 2.
    """
    parts = [_METADATA, _sized(encode(listed["metadata"], "meta/v1.ListMeta").SerializeToString())]
    for item in listed["items"]:
        parts += [_ITEM, _sized(encode(item, message).SerializeToString())]
    return _wrap(listed, b"".join(parts))


def _wrap(manifest: Mapping[str, Any], raw: bytes) -> bytes:
    unknown: Any = table().classes["runtime.Unknown"]()  # a class of run time: its fields, too
    unknown.f1.f1, unknown.f1.f2 = manifest["apiVersion"], manifest["kind"]
    unknown.f2 = raw
    envelope: bytes = unknown.SerializeToString()
    return b"k8s\x00" + envelope


def _sized(data: bytes) -> bytes:
    """Returns bytes after their length, as the wire format has it: seven bits a byte."""
    length, head = len(data), bytearray()
    while length > 127:
        head.append(length & 127 | 128)
        length >>= 7
    head.append(length)
    return bytes(head) + data


def encode(value: Mapping[str, Any], message: str) -> Any:
    """Returns a struct as a message of the runtime, without fields that the message has not."""
    out = table().classes[message]()
    rest = dict(value)
    for field in table().fields[message].values():
        if field.inline:
            inner = {name: rest.pop(name) for name in _names(field.type) & rest.keys()}
            getattr(out, f"f{field.number}").CopyFrom(encode(inner, field.type))
        elif field.name in rest:
            _put(out, field, rest.pop(field.name))
    return out


@cache
def _names(message: str) -> frozenset[str]:
    """Returns the names in JSON of a message's fields, those of inline structs included."""
    return frozenset(_list_names(message))


def _list_names(message: str) -> Iterator[str]:
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
    if type_.startswith(_OR):
        return _encode_schema_or(value, type_)
    if type_ in _LISTS:
        return new(f1=value)
    if type_ == "meta/v1.Duration":
        return new(f1=int(parse_seconds(value) * 1e9))
    return encode(value, type_)


def _encode_schema_or(value: Any, type_: str) -> Any:
    """Returns a schema, or what may stand in its place: a boolean, schemas or texts."""
    new = table().classes[type_]
    if isinstance(value, bool):
        return new(f1=value)
    if isinstance(value, list):
        is_text = type_.endswith("StringArray")
        return new(f2=value if is_text else [encode(item, _SCHEMA) for item in value])
    schema = encode(value, _SCHEMA)
    return new(f2=schema) if type_.endswith("Bool") else new(f1=schema)
