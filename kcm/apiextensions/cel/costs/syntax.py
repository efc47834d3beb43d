"""The syntax trees of compiled expressions, read from the bytes that the library makes of them.

The bytes are a message of protobuf, `cel.expr.CheckedExpr`. They are read here and not by
protobuf's own classes, because those refuse messages that are nested more than a hundred deep, as
macros in macros are.

Source: proto/cel/expr/{syntax,checked}.proto of https://github.com/google/cel-spec.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum

_Field = tuple[int, int | memoryview]
_CHECKED = "type.googleapis.com/cel.expr.CheckedExpr"
_NO_BYTES = memoryview(b"")
_VARINT, _EIGHT_BYTES, _BYTES, _FOUR_BYTES = 0, 1, 2, 5  # wire types
_PRIMITIVES = ("dyn", "bool", "int", "uint", "double", "string", "bytes")
_WELL_KNOWN = ("dyn", "any", "timestamp", "duration")


class Form(Enum):
    """The forms of expressions, and the fields of `cel.expr.Expr` that have them."""

    CONSTANT = 3
    NAME = 4
    FIELD = 5
    CALL = 6
    LIST = 7
    STRUCT = 8
    LOOP = 9


@dataclass(frozen=True, slots=True)
class Type:
    """The type of an expression, such as `int`, `list` or `optional_type`, and its parameters."""

    name: str = "dyn"
    parameters: tuple[Type, ...] = ()

    @property
    def is_scalar(self) -> bool:
        """Reports whether all values have one size."""
        if self.name == "optional_type":
            return bool(self.parameters) and self.parameters[0].is_scalar
        return self.name in ("bool", "double", "duration", "int", "timestamp", "uint")


@dataclass(frozen=True, slots=True)
class Loop:
    """The parts of a macro that goes through a list or map, or of `cel.bind`."""

    variables: tuple[str, str]  # the second is "" if there is one
    items: Node
    result_name: str
    first: Node
    condition: Node
    step: Node
    result: Node


@dataclass(frozen=True, slots=True)
class Node:
    """An expression."""

    number: int
    form: Form
    name: str = ""  # of the variable, field or function
    target: Node | None = None  # what a field or a method is of
    parts: tuple[Node, ...] = ()  # arguments, items, or keys and values
    size: int | None = None  # of a literal
    value: int | None = None  # of a whole number
    is_map: bool = False
    only_tests: bool = False  # has(target.name)
    loop: Loop | None = None


@dataclass(frozen=True)
class SyntaxTree:
    """An expression with the types of its parts and the overloads of its functions, by number."""

    root: Node
    types: Mapping[int, Type]
    overloads: Mapping[int, tuple[str, ...]]


def read(serialized: bytes) -> SyntaxTree:
    """Returns the tree of a serialized program whose types have been checked.

    Raises ValueError for another one, and RecursionError for one that is nested too deeply.
    """
    whole = memoryview(serialized)  # a google.protobuf.Any
    if _text(_bytes_of(whole, 1)) != _CHECKED:
        raise ValueError("the types of the expression have not been checked")
    checked = _bytes_of(whole, 2)
    types, overloads = {}, {}
    for number, value in _fields(checked):
        if number == 2:  # reference_map
            reference = _bytes_of(_view(value), 2)
            overloads[_number_of(_view(value), 1)] = tuple(_texts(reference, 3))
        elif number == 3:  # type_map
            types[_number_of(_view(value), 1)] = _type(_bytes_of(_view(value), 2))
    return SyntaxTree(_node(_bytes_of(checked, 4)), types, overloads)


def _node(data: memoryview) -> Node:
    number = _number_of(data, 2)
    for field, value in _fields(data):
        if field in _READERS:
            return _READERS[field](number, _view(value))
    return Node(number, Form.CONSTANT)


def _constant(number: int, data: memoryview) -> Node:
    for field, value in _fields(data):
        if field == 6:  # string_value
            return Node(number, Form.CONSTANT, size=len(_text(value)))
        if field == 7:  # bytes_value
            return Node(number, Form.CONSTANT, size=len(_view(value)))
        if field == 3 and isinstance(value, int):  # int64_value
            return Node(number, Form.CONSTANT, size=1, value=value - (value >> 63 << 64))
        if field == 2:  # bool_value
            return Node(number, Form.CONSTANT, name="true" if value else "false", size=1)
    return Node(number, Form.CONSTANT, size=1)


def _name(number: int, data: memoryview) -> Node:
    return Node(number, Form.NAME, name=_text(_bytes_of(data, 1)))


def _field(number: int, data: memoryview) -> Node:
    return Node(
        number,
        Form.FIELD,
        name=_text(_bytes_of(data, 2)),
        target=_node(_bytes_of(data, 1)),
        only_tests=bool(_number_of(data, 3)),
    )


def _call(number: int, data: memoryview) -> Node:
    target = next((_node(_view(value)) for field, value in _fields(data) if field == 1), None)
    return Node(
        number,
        Form.CALL,
        name=_text(_bytes_of(data, 2)),
        target=target,
        parts=tuple(_node(part) for part in _all(data, 3)),
    )


def _list(number: int, data: memoryview) -> Node:
    parts = tuple(_node(part) for part in _all(data, 1))
    return Node(number, Form.LIST, parts=parts, size=len(parts))


def _struct(number: int, data: memoryview) -> Node:
    entries, parts = _all(data, 2), []
    for entry in entries:
        parts += [_node(part) for field in (3, 4) for part in _all(entry, field)]
    is_map = not _bytes_of(data, 1)
    size = len(entries) if is_map else None
    return Node(number, Form.STRUCT, parts=tuple(parts), size=size, is_map=is_map)


def _loop(number: int, data: memoryview) -> Node:
    parts = [_node(_bytes_of(data, field)) for field in (2, 4, 5, 6, 7)]
    first, second, result = (_text(_bytes_of(data, field)) for field in (1, 8, 3))
    items, begun, condition, step, end = parts
    loop = Loop((first, second), items, result, begun, condition, step, end)
    return Node(number, Form.LOOP, loop=loop)


_READERS = {
    Form.CONSTANT.value: _constant,
    Form.NAME.value: _name,
    Form.FIELD.value: _field,
    Form.CALL.value: _call,
    Form.LIST.value: _list,
    Form.STRUCT.value: _struct,
    Form.LOOP.value: _loop,
}


def _type(data: memoryview) -> Type:
    for field, value in _fields(data):
        if field == 3 and isinstance(value, int):  # primitive
            return Type(_PRIMITIVES[value])
        if field == 5 and isinstance(value, int):  # well_known
            return Type(_WELL_KNOWN[value])
        if field == 6:  # list_type
            return Type("list", (_type(_bytes_of(_view(value), 1)),))
        if field == 7:  # map_type
            return Type("map", tuple(_type(_bytes_of(_view(value), part)) for part in (1, 2)))
        if field == 9:  # message_type
            return Type("message")
        if field == 10:  # type_param
            return Type("parameter")
        if field == 14:  # abstract_type
            parameters = tuple(_type(part) for part in _all(_view(value), 2))
            return Type(_text(_bytes_of(_view(value), 1)), parameters)
    return Type()


# --- protobuf's wire format


def _fields(data: memoryview) -> Iterator[_Field]:
    """Yields the numbers and values of a message's fields. Raises ValueError."""
    at, end = 0, len(data)
    while at < end:
        key, at = _read_number(data, at)
        kind = key & 7
        if kind == _VARINT:
            value, at = _read_number(data, at)
            yield key >> 3, value
            continue
        if kind == _BYTES:
            size, at = _read_number(data, at)
        elif kind in (_EIGHT_BYTES, _FOUR_BYTES):
            size = 8 if kind == _EIGHT_BYTES else 4
        else:
            raise ValueError(f"no expression: wire type {kind}")
        if at + size > end:
            raise ValueError("no expression: it is cut off")
        yield key >> 3, data[at : at + size]
        at += size


def _read_number(data: memoryview, at: int) -> tuple[int, int]:
    value = shift = 0
    while at < len(data) and shift < 64:  # bits
        byte = data[at]
        at, value, shift = at + 1, value | (byte & 127) << shift, shift + 7
        if byte < 128:  # the last byte of a number
            return value, at
    raise ValueError("no expression: a number has no end")


def _all(data: memoryview, number: int) -> list[memoryview]:
    return [_view(value) for field, value in _fields(data) if field == number]


def _bytes_of(data: memoryview, number: int) -> memoryview:
    return next(iter(_all(data, number)), _NO_BYTES)


def _number_of(data: memoryview, number: int) -> int:
    values = (value for field, value in _fields(data) if field == number)
    return next((value for value in values if isinstance(value, int)), 0)


def _texts(data: memoryview, number: int) -> list[str]:
    return [_text(part) for part in _all(data, number)]


def _view(value: int | memoryview) -> memoryview:
    return value if isinstance(value, memoryview) else _NO_BYTES


def _text(value: int | memoryview) -> str:
    return bytes(_view(value)).decode(errors="replace")
