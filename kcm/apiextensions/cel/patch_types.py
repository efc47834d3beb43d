"""The types `Object` and `JSONPatch` in the expressions of MutatingAdmissionPolicies.

The library for CEL has types of messages only, with fields that are known beforehand. So an
initializer such as `Object.spec{replicas: 3}` is rewritten as a map that has the name of its type
as well, before it is compiled; the names are checked and taken out of its value. Fields have no
types of their own upstream either.

Source: staging/src/k8s.io/apiserver/pkg/cel/mutation and cel/library/jsonpatch.go, Kubernetes 1.36.
"""

from __future__ import annotations

import base64
import json
import math
import re
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any

from kcm.apiextensions.cel.spelling import TEXT
from kcm.apimachinery.meta_v1 import format_time

_TYPE = "\x00type"  # no field has such a name
OBJECT, _PATCH = "Object", "JSONPatch"
_PATCH_FIELDS = ("op", "path", "from", "value")
_ESCAPED = '.replace("~", "~0").replace("/", "~1")'
_TOKEN = re.compile(
    rf"(?P<text>{TEXT})"
    r"""
    | (?P<space>(?:\s|//[^\n]*)++)
    | (?P<name>[A-Za-z_]\w*|`[^`\n]*`)
    | (?P<other>.)
    """,
    re.VERBOSE | re.DOTALL,
)
_INITIALIZER = re.compile(r"(?:Object(?:\s*\.\s*[A-Za-z_]\w*)*|JSONPatch)\s*\{")
_ENDS = re.compile(r"(?:\s|//[^\n]*)*+\}")
_ESCAPE = re.compile(r"jsonpatch\s*\.\s*escapeKey\s*\(")
_CLOSES = {")": "(", "]": "[", "}": "{"}


class WrongPatchTypeError(ValueError):
    """The value of an expression is no object or patch, or has parts of the wrong types."""


def rewrite(text: str) -> str:
    """Returns an expression without initializers of `Object` and `JSONPatch`, and without calls of
    `jsonpatch.escapeKey`.
    """
    return "".join(_Rewriting(text).pieces())


class _Rewriting:
    """Rewrites one expression, in time that grows with its length."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._open: list[tuple[str, str]] = []  # each bracket, and what follows when it is closed
        self._at_field = False  # whether a field of an initializer may follow
        self._before = ""  # the last token that is no space

    def pieces(self) -> Iterator[str]:
        at = 0
        while at < len(self._text):
            token = _TOKEN.match(self._text, at)
            assert token is not None  # any character is one
            replaced = self._replace(at) if token.lastgroup == "name" else None
            if replaced is not None:
                piece, at = replaced
            else:
                piece, at = self._keep(token), token.end()
            yield piece

    def _replace(self, at: int) -> tuple[str, int] | None:
        """Returns what stands for an initializer's or a call's beginning, and where that ends."""
        if self._before == ".":
            return None
        if call := _ESCAPE.match(self._text, at):
            self._open.append(("(", _ESCAPED))
            self._before = "("
            return "(", call.end()
        if initializer := _INITIALIZER.match(self._text, at):
            name = "".join(initializer[0].removesuffix("{").split())
            self._open.append(("Object", ""))
            self._before, self._at_field = "{", True
            more = "" if _ENDS.match(self._text, initializer.end()) else ", "
            return f"{{{json.dumps(_TYPE)}: dyn({json.dumps(name)}){more}", initializer.end()
        return None

    def _keep(self, token: re.Match[str]) -> str:
        piece = token[0]
        if token.lastgroup == "space":
            return piece
        if self._at_field and piece != "?":
            self._at_field = False
            if token.lastgroup == "name":
                self._before = piece
                return json.dumps(piece.strip("`"))
        if piece in ("(", "[", "{"):
            self._open.append((piece, ""))
        elif piece in _CLOSES:
            piece += self._open.pop()[1] if self._open else ""
        elif piece == ",":
            self._at_field = bool(self._open) and self._open[-1][0] == "Object"
        self._before = token[0]
        return piece


# --- values


def read_object(value: Any) -> dict[str, Any]:
    """Returns the JSON value of an `Object`. Raises WrongPatchTypeError."""
    if _name(value) != OBJECT:
        raise WrongPatchTypeError(f"must evaluate to Object but got {_describe(value)}")
    faults = list(_faults(value, OBJECT))
    if faults:
        raise WrongPatchTypeError("type mismatch: " + "\n".join(faults))
    read: dict[str, Any] = to_json(value)
    return read


def read_patch(value: Any) -> list[dict[str, Any]]:
    """Returns the operations of a list of `JSONPatch`. Raises WrongPatchTypeError."""
    if not isinstance(value, list) or any(_name(one) != _PATCH for one in value):
        got = _describe(value)
        raise WrongPatchTypeError(f"must evaluate to list(JSONPatch) but got {got}")
    return [_read_operation(one) for one in value]


def _read_operation(value: Mapping[str, Any]) -> dict[str, Any]:
    for field, inner in value.items():
        if field not in (_TYPE, *_PATCH_FIELDS):
            raise WrongPatchTypeError(f"unexpected JSONPatchType field: {field}")
        if field != "value" and not isinstance(inner, str):
            raise WrongPatchTypeError(f"the field '{field}' of a JSONPatch must be a string")
    operation = {"op": value.get("op", ""), "path": value.get("path", "")}
    if value.get("from"):
        operation["from"] = value["from"]
    if "value" in value:
        inner = value["value"]
        if faults := list(_faults(inner, _name(inner))):
            raise WrongPatchTypeError("type mismatch: " + "\n".join(faults))
        operation["value"] = to_json(inner)
    return operation


def _describe(value: Any) -> str:
    """Returns the name of the type of a value, as CEL has it."""
    if isinstance(value, list):
        inner = {_describe(item) for item in value}
        return f"list({inner.pop() if len(inner) == 1 else 'dyn'})"
    names = {str: "string", bool: "bool", int: "int", float: "double", dict: "map"}
    return _name(value) or ("null_type" if value is None else names.get(type(value), "dyn"))


def _name(value: Any) -> str:
    """Returns the name of the type of an initializer's value, "" for any other value."""
    return str(value.get(_TYPE, "")) if isinstance(value, dict) else ""


def _faults(value: Any, path: str) -> Iterator[str]:
    """Yields what is wrong with the names of types: that of a field ends with the field's name.

    Maps and lists between have no names.
    """
    if isinstance(value, list):
        for item in value:
            yield from _faults(item, path)
    if not isinstance(value, dict):
        return
    name = _name(value)
    if name and name != path:
        yield (
            f'unexpected type name "{name}", expected "{path}", which matches field name path '
            "from root Object type"
        )
    for field, inner in value.items():
        if field != _TYPE:
            yield from _faults(inner, f"{path}.{field}" if name else path)


def to_json(value: Any) -> Any:
    """Returns a value of CEL as JSON, without the names of types. Raises WrongPatchTypeError."""
    match value:
        case None | bool() | int() | str():
            return value
        case float() if math.isfinite(value):
            return value
        case list():
            return [to_json(item) for item in value]
        case dict():
            return {_key(key): to_json(inner) for key, inner in value.items() if key != _TYPE}
        case bytes() | bytearray():
            return base64.b64encode(value).decode()
        case datetime():
            return format_time(value)
        case timedelta():
            return f"{value.total_seconds():g}s"
    raise WrongPatchTypeError(f"a value of type {type(value).__name__} cannot be written as JSON")


def _key(key: Any) -> str:
    if isinstance(key, str):
        return key
    raise WrongPatchTypeError(f"map key {key!r} is not a string")
