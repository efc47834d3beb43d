"""The OpenAPI v2 document as protobuf, the only form that kubectl up to 1.27 accepts.

Field numbers are those of openapiv2/OpenAPIv2.proto in github.com/google/gnostic-models.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

CONTENT_TYPE = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"
RESPONSE_TYPE = CONTENT_TYPE.replace("@", ".")  # no @ is allowed in a Content-Type

Json = Mapping[str, Any]

_METHODS = {"get": 2, "put": 3, "post": 4, "delete": 5, "options": 6, "head": 7, "patch": 8}


def encode(document: Json) -> bytes:
    """Returns the document in protobuf."""
    info = _text(1, document["info"]["title"]) + _text(2, document["info"]["version"])
    paths = b"".join(_write_named(2, name, _path(item)) for name, item in document["paths"].items())
    return (
        _text(1, document["swagger"])
        + _field(2, info)
        + _field(8, paths)
        + _field(9, _schemas(document["definitions"]))
        + _field(10, b"".join(_list_shared(document.get("parameters", {}))))
    )


def _list_shared(parameters: Json) -> Iterator[bytes]:
    return (_write_named(1, name, _parameter(one)) for name, one in parameters.items())


def _path(item: Json) -> bytes:
    operations = (
        _field(number, _operation(item[method]))
        for method, number in _METHODS.items()
        if method in item
    )
    return b"".join(operations) + b"".join(_list_parameters(9, item))


def _list_parameters(number: int, source: Json) -> Iterator[bytes]:
    """Yields the parameters of a path or an operation: themselves, or references to them."""
    for one in source.get("parameters", ()):
        is_ref = "$ref" in one
        item = _field(2, _text(1, one["$ref"])) if is_ref else _field(1, _parameter(one))
        yield _field(number, item)


def _operation(operation: Json) -> bytes:
    responses = (
        _write_named(1, code, _field(1, _response(response)))
        for code, response in operation.get("responses", {}).items()
    )
    return (
        b"".join(_text(1, tag) for tag in operation.get("tags", ()))
        + _text(3, operation.get("description", ""))
        + _text(5, operation.get("operationId", ""))
        + b"".join(_text(6, media) for media in operation.get("produces", ()))
        + b"".join(_text(7, media) for media in operation.get("consumes", ()))
        + b"".join(_list_parameters(8, operation))
        + _field(9, b"".join(responses))
        + _extensions(13, operation)
    )


def _response(response: Json) -> bytes:
    words = _text(1, response.get("description", ""))
    if "schema" not in response:
        return words
    return words + _field(2, _field(1, _schema(response["schema"])))


def _parameter(parameter: Json) -> bytes:
    name, place = parameter["name"], parameter["in"]
    if place == "body":
        head = _text(2, name) + _text(3, place) + _number(4, 1)
        return _field(1, head + _field(5, _schema(parameter["schema"])))
    fields = (
        (_number(1, 1) if parameter.get("required") else b"")
        + _text(2, place)
        + _text(3, parameter.get("description", ""))
        + _text(4, name)
    )
    if place == "query":
        return _field(2, _field(3, fields + _text(6, parameter.get("type", ""))))
    return _field(2, _field(4, fields + _text(5, "string")))


def _schemas(schemas: Json) -> bytes:
    return b"".join(_write_named(1, name, _schema(schema)) for name, schema in schemas.items())


def _schema(schema: Json) -> bytes:
    parts = [
        _text(1, schema.get("$ref", "")),
        _text(2, schema.get("format", "")),
        _text(4, schema.get("description", "")),
        *(_text(19, name) for name in schema.get("required", ())),
    ]
    if "additionalProperties" in schema:
        extra = schema["additionalProperties"]
        inner = _number(2, int(extra)) if isinstance(extra, bool) else _field(1, _schema(extra))
        parts.append(_field(21, inner))
    if "type" in schema:
        parts.append(_field(22, _text(1, schema["type"])))
    if "items" in schema:
        parts.append(_field(23, _field(1, _schema(schema["items"]))))
    if "properties" in schema:
        parts.append(_field(25, _schemas(schema["properties"])))
    return b"".join([*parts, _extensions(31, schema)])


def _extensions(number: int, source: Json) -> bytes:
    return b"".join(
        _write_named(number, name, _text(2, json.dumps(value)))
        for name, value in source.items()
        if name.startswith("x-")
    )


# --- the wire


def _write_named(number: int, name: str, value: bytes) -> bytes:
    return _field(number, _text(1, name) + _field(2, value))


def _text(number: int, text: str) -> bytes:
    return _field(number, text.encode()) if text else b""


def _field(number: int, value: bytes) -> bytes:
    return bytes(_varint(number << 3 | 2)) + bytes(_varint(len(value))) + value


def _number(number: int, value: int) -> bytes:
    return bytes(_varint(number << 3)) + bytes(_varint(value))


def _varint(value: int) -> Iterable[int]:
    while value > 0x7F:
        yield value & 0x7F | 0x80
        value >>= 7
    yield value
