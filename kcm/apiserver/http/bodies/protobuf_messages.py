"""Upstream's protobuf messages, as descriptors for the protobuf runtime.

`protobuf_messages.txt` has them as text, written by `tools/protobuf_messages.py`:

    package apps/v1
    DeploymentSpec
      1 replicas int32              a field: number, name in JSON, type
      4 strategy DeploymentStrategy
      5 minReadySeconds int32 ?     left out of the JSON when it is zero

Types are `[]` of one, `map:` from string to one; a name with a `.` is of another package.
The name `-` means that the fields of the message appear in place.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.message import Message

_Proto = descriptor_pb2.FieldDescriptorProto
_SCALARS = {
    "string": _Proto.TYPE_STRING,
    "bytes": _Proto.TYPE_BYTES,
    "bool": _Proto.TYPE_BOOL,
    "int32": _Proto.TYPE_INT32,
    "int64": _Proto.TYPE_INT64,
    "double": _Proto.TYPE_DOUBLE,
}


@dataclass(frozen=True)
class MessageField:
    """A field of a message: one line of protobuf_messages.txt."""

    number: int
    name: str  # the name in JSON
    type: str  # a scalar, or the full name of a message such as "v1.Pod"
    container: str = ""  # "[]" or "map:"
    drops_zero: bool = False

    @property
    def inline(self) -> bool:
        """Reports whether the fields of this message appear directly in the JSON of its parent."""
        return self.name == "-"


@dataclass
class MessageTable:
    """The fields of each message by their numbers, and the runtime's class for each message."""

    fields: dict[str, dict[int, MessageField]] = field(default_factory=dict)
    classes: dict[str, type[Message]] = field(default_factory=dict)


@cache
def table() -> MessageTable:
    """Returns all messages.

    They are parsed at the first call, which takes some ten milliseconds.
    """
    text = resources.files(__package__).joinpath("protobuf_messages.txt").read_text("utf-8")
    fields = dict(_parse(text))
    return MessageTable(fields, _classes(fields))


def _parse(text: str) -> Iterator[tuple[str, dict[int, MessageField]]]:
    package = ""
    fields: dict[int, MessageField] = {}
    for line in text.splitlines():
        match line.split():
            case ["package", package]:
                continue
            case [name]:
                fields = {}
                yield f"{package}.{name}", fields
            case [number, name, type_, *zero]:
                fields[int(number)] = _field(int(number), name, type_, package, bool(zero))


def _field(number: int, name: str, type_: str, package: str, drops_zero: bool) -> MessageField:
    container = next((mark for mark in ("[]", "map:") if type_.startswith(mark)), "")
    bare = type_.removeprefix(container)
    full = bare if bare in _SCALARS or "." in bare else f"{package}.{bare}"
    return MessageField(number, name, full, container, drops_zero)


def _classes(messages: Mapping[str, Mapping[int, MessageField]]) -> dict[str, type[Message]]:
    # One file holds all messages. Their names are numbered, since upstream's are no identifiers.
    names = {message: f"M{index}" for index, message in enumerate(messages)}
    file = descriptor_pb2.FileDescriptorProto(name="kcm.proto", package="kcm", syntax="proto2")
    for message, fields in messages.items():
        described = file.message_type.add(name=names[message])
        for message_field in fields.values():
            _describe(described, message_field, names)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return {
        message: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"kcm.{name}"))
        for message, name in names.items()
    }


def _describe(message: Any, message_field: MessageField, names: Mapping[str, str]) -> None:
    described = message.field.add(
        name=f"f{message_field.number}",
        number=message_field.number,
        label=_Proto.LABEL_REPEATED if message_field.container else _Proto.LABEL_OPTIONAL,
    )
    if message_field.container != "map:":
        _set_type(described, message_field.type, names)
        return
    entry = message.nested_type.add(name=f"F{message_field.number}Entry")
    entry.options.map_entry = True
    key = entry.field.add(name="key", number=1, label=_Proto.LABEL_OPTIONAL)
    _set_type(key, "string", names)
    value = entry.field.add(name="value", number=2, label=_Proto.LABEL_OPTIONAL)
    _set_type(value, message_field.type, names)
    described.type = _Proto.TYPE_MESSAGE
    described.type_name = f".kcm.{message.name}.{entry.name}"


def _set_type(described: Any, type_: str, names: Mapping[str, str]) -> None:
    if type_ in _SCALARS:
        described.type = _SCALARS[type_]
        return
    described.type = _Proto.TYPE_MESSAGE
    described.type_name = f".kcm.{names[type_]}"
