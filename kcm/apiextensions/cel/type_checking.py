"""Checks the types in expressions against the fields of a kind.

The library knows types of messages only, so a kind's structs are described to it as messages of
protobuf, with the fields' names in JSON. What may be of several types, and whatever is deeper or
more than a description should have, is of any type.

Source: staging/src/k8s.io/apiserver/pkg/admission/plugin/policy/validating/typechecking.go and
pkg/cel/common/schemas.go, Kubernetes 1.33. Departures: `request`, `namespaceObject` and `variables`
have no types.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any

from kcm.api.custom.kinds import CustomObject, CustomResource
from kcm.api.custom.structural_schema import StructuralSchema
from kcm.api.scheme import Resource
from kcm.apiextensions import structure
from kcm.apiextensions.cel.values import describes_itself, spell_names
from kcm.apiextensions.structure import Shape, Struct
from kcm.apimachinery.base import Model
from kcm.apimachinery.meta_v1 import KubeObject

_MOST_MESSAGES = 10_000
_MOST_FIELDS = 100_000  # of a message; the numbers beyond are those of second names
_PACKAGE = "kcm.checked"
_OWN_NAME = re.compile(rf"{re.escape(_PACKAGE)}\.([A-Za-z]+)\d+")  # DeploymentSpec of the kind's
_LINE = re.compile(r"<input>:(\d+):")
_ANY, _MOMENT = ".google.protobuf.Value", ".google.protobuf.Timestamp"
_REAL, _WHOLE, _TRUTH, _TEXT, _MESSAGE, _BYTES = (
    1,
    3,
    8,
    9,
    11,
    12,
)  # numbers of types in descriptor.proto
_OPTIONAL, _REPEATED = 1, 3  # numbers of labels
_OF_SHAPE = {"string": _TEXT, "quantity": _TEXT, "integer": _WHOLE, "boolean": _TRUTH}
_OF_FORMAT = {
    "byte": (_BYTES, ""),
    "duration": (_MESSAGE, ".google.protobuf.Duration"),
    "date": (_MESSAGE, _MOMENT),
    "date-time": (_MESSAGE, _MOMENT),
}
_SIGNATURES = {
    (_TEXT, ""): "string",
    (_WHOLE, ""): "int",
    (_TRUTH, ""): "bool",
    (_REAL, ""): "double",
    (_BYTES, ""): "bytes",
    (_MESSAGE, _MOMENT): "google.protobuf.Timestamp",
    (_MESSAGE, ".google.protobuf.Duration"): "google.protobuf.Duration",
}
_OF_RESULT = {
    "STRING": (_TEXT, ""),
    "INT": (_WHOLE, ""),
    "BOOL": (_TRUTH, ""),
    "DOUBLE": (_REAL, ""),
    "BYTES": (_BYTES, ""),
    "TIMESTAMP": (_MESSAGE, _MOMENT),
    "DURATION": (_MESSAGE, ".google.protobuf.Duration"),
}  # types of the values of expressions
_OF_SCHEMA = {"string": _TEXT, "integer": _WHOLE, "boolean": _TRUTH, "number": _REAL}
_UNTYPED = ("request", "namespaceObject", "variables", "authorizer")
_LOCK = threading.Lock()


def find_type_error(text: str, kind: Resource, params: Resource | None) -> str:
    """Returns what is wrong with the types in an expression, "" if nothing is.

    `object` and `oldObject` are of the kind, `params` are of their own. Without the library,
    nothing is wrong.
    """
    is_kept = not (isinstance(kind, CustomResource) or isinstance(params, CustomResource))
    environment = _kept_environment(kind, params) if is_kept else _environment(kind, params)
    return "" if environment is None else find_type_in(environment, text)[1]


def find_type(text: str, names: Iterable[str], variables: Mapping[str, str]) -> tuple[str, str]:
    """Returns the type of the value of a policy's expression, and what is wrong with it, "" if
    nothing is.

    `names` are the variables that it sees besides `variables`, which has the types of the policy's
    own. Without the library, the type is DYN.
    """
    environment = _policy_environment(tuple(names), tuple(variables.items()))
    return ("DYN", "") if environment is None else find_type_in(environment, text)


def find_type_in(environment: Any, text: str) -> tuple[str, str]:
    """Returns the type of the value of an expression, and what is wrong with it, "" if nothing
    is.
    """
    program, error = compile_in(environment, text)
    return ("", error) if program is None else (str(program.return_type().name()), "")


def compile_in(environment: Any, text: str, *, skipped: int = 0) -> tuple[Any, str]:
    """Returns the program of an expression, or None and what is wrong with it.

    The first `skipped` lines of the text are not part of the expression.
    """
    try:
        with _LOCK:  # the environment may not be thread-safe
            return environment.compile(text), ""
    except (RuntimeError, ValueError, TypeError) as error:
        return None, _read_error(error, skipped)


@lru_cache(maxsize=32)
def _policy_environment(names: tuple[str, ...], variables: tuple[tuple[str, str], ...]) -> Any:
    try:
        from kcm.apiextensions.cel import cel_environment  # noqa: PLC0415 - loads 16 MB
    except ImportError:
        return None
    pool = Descriptions()
    own = {"variables": pool.add_fields("Variables", variables)}
    others = [name for name in names if name != "variables"]
    return cel_environment.make_typed(pool.build(), own, others)


def _read_error(error: Exception, skipped: int = 0) -> str:
    message = str(error).strip().removeprefix("INVALID_ARGUMENT: ")
    message = _OWN_NAME.sub(r"\1", message.removesuffix(" [INVALID_ARGUMENT]"))
    if not skipped:
        return message
    return _LINE.sub(lambda line: f"<input>:{int(line[1]) - skipped}:", message)


def _environment(kind: Resource, params: Resource | None) -> Any:
    try:
        from kcm.apiextensions.cel import cel_environment  # noqa: PLC0415 - loads 16 MB
    except ImportError:
        return None
    pool = Descriptions()
    variables = dict.fromkeys(("object", "oldObject"), pool.add(kind.model))
    if params is not None:
        variables["params"] = pool.add(params.model)
    try:
        return cel_environment.make_typed(pool.build(), variables, _UNTYPED)
    except (RuntimeError, TypeError, ValueError):  # a schema that protobuf cannot express
        return None


_kept_environment = lru_cache(maxsize=32)(_environment)


class Descriptions:
    """Describes structs as messages, each once."""

    def __init__(self) -> None:
        from google.protobuf import descriptor_pb2  # noqa: PLC0415 - comes with the library

        self._file = descriptor_pb2.FileDescriptorProto(
            name="kcm/checked.proto", package=_PACKAGE, syntax="proto2"
        )
        self._file.dependency.extend(
            [f"google/protobuf/{name}.proto" for name in ("duration", "struct", "timestamp")]
        )
        self._names: dict[int, str] = {}
        self._kept: list[Struct] = []  # so that their ids stay theirs
        self._waiting: list[tuple[Struct, Any]] = []

    def add(self, struct: Struct) -> str:
        """Returns the name of the message for a struct, and describes all structs below it."""
        name = self._message(struct)
        while self._waiting:
            self._describe(*self._waiting.pop())
        return name

    def describe(self, schema: StructuralSchema) -> str:
        """Returns the type of a value, such as `list<string>`, and describes all structs in it."""
        item, is_map = _item(schema)
        if item is not None and isinstance(item, StructuralSchema):
            inner = self.describe(item)
            return f"map<string, {inner}>" if is_map else f"list<{inner}>"
        if schema.type == "object" and not schema.int_or_string:
            return self.add(with_object_fields(schema) if schema.embedded else schema)
        return _SIGNATURES.get(_simple_type(schema) or (_MESSAGE, _ANY), "dyn")

    def add_fields(self, title: str, types: Iterable[tuple[str, str]]) -> str:
        """Returns the name of a message that has fields of these types, such as BOOL."""
        message = self._file.message_type.add(name=title)
        for number, (name, kind) in enumerate(types, 1):
            of_type = _OF_RESULT.get(kind, (_MESSAGE, _ANY))
            _add(message, name, number, _OPTIONAL, of_type)
        return f"{_PACKAGE}.{title}"

    def build(self) -> Any:
        """Returns the pool of all messages, with those of protobuf that they use."""
        from google.protobuf import (  # noqa: PLC0415 - comes with the library
            any_pb2,
            descriptor_pb2,
            descriptor_pool,
            duration_pb2,
            empty_pb2,
            struct_pb2,
            timestamp_pb2,
            wrappers_pb2,
        )

        pool = descriptor_pool.DescriptorPool()
        modules = (any_pb2, duration_pb2, empty_pb2, struct_pb2, timestamp_pb2, wrappers_pb2)
        for module in modules:
            proto = descriptor_pb2.FileDescriptorProto()
            module.DESCRIPTOR.CopyToProto(proto)
            pool.Add(proto)
        pool.Add(self._file)
        return pool

    def _message(self, struct: Struct) -> str:
        """Returns the name of the message for a struct, which is described later."""
        named = self._names.get(id(struct))
        if named is not None:
            return named
        if struct is None or len(self._names) >= _MOST_MESSAGES:
            return _ANY.removeprefix(".")
        title = struct.__name__ if isinstance(struct, type) else "Object"
        name = f"{title}{len(self._names)}"
        self._names[id(struct)] = f"{_PACKAGE}.{name}"
        self._kept.append(struct)
        self._waiting.append((struct, self._file.message_type.add(name=name)))
        return self._names[id(struct)]

    def _describe(self, struct: Struct, message: Any) -> None:
        taken: set[str] = set()
        for number, (name, shape) in enumerate(_fields(struct), 1):
            if isinstance(shape, StructuralSchema) and not _is_exposed(shape):
                continue
            for which, spelling in enumerate(spell_names(name)):
                title = _entry_title(spelling) if _item(shape)[1] else spelling
                if spelling.isidentifier() and spelling.isascii() and title not in taken:
                    taken.add(title)
                    self._field(message, spelling, which * _MOST_FIELDS + number, shape)

    def _field(self, message: Any, name: str, number: int, shape: Shape | StructuralSchema) -> None:
        label, (kind, of) = _OPTIONAL, self._type(shape)
        item, is_map = _item(shape)
        if item is not None:
            label, (kind, of) = _REPEATED, self._type(item)
        if is_map and item is not None:
            title = _entry_title(name)
            entry = message.nested_type.add(name=title)
            entry.options.map_entry = True
            entry.field.add(name="key", number=1, type=_TEXT, label=_OPTIONAL)
            _add(entry, "value", 2, _OPTIONAL, (kind, of))
            kind, of = _MESSAGE, f".{_PACKAGE}.{message.name}.{title}"
        _add(message, name, number, label, (kind, of))

    def _type(self, shape: Shape | StructuralSchema) -> tuple[int, str]:
        """Returns the number of a value's type, and the name of its message if it is one."""
        if isinstance(shape, StructuralSchema):
            return self._type_of_schema(shape)
        if shape.kind in _OF_SHAPE:
            return _OF_SHAPE[shape.kind], ""
        if shape.kind in ("time", "microtime"):
            return _MESSAGE, _MOMENT
        if shape.kind == "struct" and shape.model is not None:
            return _MESSAGE, f".{self._message(shape.model)}"
        return _MESSAGE, _ANY

    def _type_of_schema(self, schema: StructuralSchema) -> tuple[int, str]:
        if (simple := _simple_type(schema)) is not None:
            return simple
        if schema.type == "object" and _item(schema)[0] is None and not schema.int_or_string:
            described = with_object_fields(schema) if schema.embedded else schema
            return _MESSAGE, f".{self._message(described)}"
        return _MESSAGE, _ANY


def with_object_fields(schema: StructuralSchema) -> StructuralSchema:
    """Returns the schema of an object with what all objects have, and rules may read."""
    if describes_itself(schema):
        return schema
    text = StructuralSchema({}, type="string")
    metadata = StructuralSchema({}, type="object", properties={"name": text, "generateName": text})
    more = {"kind": text, "apiVersion": text, "metadata": metadata}
    return replace(schema, properties={**schema.properties, **more})


def _is_exposed(schema: StructuralSchema) -> bool:
    """Reports whether rules may read a value. Those of which the schema gives no type they may not.

    Source: SchemaDeclType in staging/src/k8s.io/apiserver/pkg/cel/common/schemas.go.
    """
    if schema.int_or_string:
        return True
    if schema.type == "array":
        return schema.items is not None and _is_exposed(schema.items)
    if schema.type == "object" and schema.additional is not None:
        return _is_exposed(schema.additional)
    return bool(schema.type)


def _simple_type(schema: StructuralSchema) -> tuple[int, str] | None:
    """Returns the number of the type of a value that is neither object nor list, or None."""
    if schema.int_or_string:
        return None
    if schema.type == "string":
        return _OF_FORMAT.get(str(schema.raw.get("format") or ""), (_TEXT, ""))
    number = _OF_SCHEMA.get(schema.type)
    return None if number is None else (number, "")


def _entry_title(name: str) -> str:
    """Returns the name that protobuf wants for the message of a map's entries."""
    return "".join(part[:1].upper() + part[1:] for part in name.split("_")) + "Entry"


def _add(message: Any, name: str, number: int, label: int, of_type: tuple[int, str]) -> None:
    """Adds a field. `of_type` is the number of its type, and the name of its message."""
    kind, of = of_type
    field = message.field.add(name=name, number=number, type=kind, label=label)
    field.json_name = f"field{number}"  # unique, whatever the names are
    if of:
        field.type_name = of


def _item(shape: Shape | StructuralSchema) -> tuple[Shape | StructuralSchema | None, bool]:
    """Returns the type of the items of a list or map, and whether it is a map's.

    An item that is a list or map itself is of any type.
    """
    if isinstance(shape, StructuralSchema):
        if shape.type == "array" and shape.items is not None:
            return shape.items, False
        is_map = shape.type == "object" and shape.additional is not None
        return (shape.additional, True) if is_map else (None, False)
    if shape.kind in ("list", "map"):
        return shape.item, shape.kind == "map"
    return None, False


def _fields(struct: Struct) -> Iterator[tuple[str, Shape | StructuralSchema]]:
    if isinstance(struct, StructuralSchema):
        yield from struct.properties.items()
    elif struct is not None and issubclass(struct, CustomObject):
        for name, field in structure.fields(KubeObject).items():
            yield name, field.shape
        for name, schema in struct.custom.schema.properties.items():
            if name not in structure.fields(KubeObject):
                yield name, schema
    elif struct is not None and issubclass(struct, Model):
        for name, field in structure.fields(struct).items():
            yield name, field.shape
