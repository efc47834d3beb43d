"""Paths of fields of custom objects, such as `spec.color`, and the paths in a schema's extensions,
such as `.spec.color` or `.spec['a.b']`.

Source: ValidFieldPath in
staging/src/k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel/validation.go, Kubernetes 1.36.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

_NO_FIELD = "does not refer to a valid field"
_TOKEN = re.compile(r"[.\[\]]|'.*?(?<!\\)'|'.*|[^.\[\]]+", re.DOTALL)
_ESCAPED = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_SHOWN = 256  # characters of a token in an error


class WrongPathError(ValueError):
    """The path is not one of fields alone, or leads to no field of the schema."""


def join(path: str, name: str) -> str:
    """Returns the path of a field of the object at a path, which is "" for the whole."""
    return f"{path}.{name}" if path else name


def follow(
    path: str, schema: Mapping[str, Any], *, arrays: bool
) -> tuple[tuple[str, ...], Mapping[str, Any]]:
    """Returns the names of the fields on a path, and the last one's schema.

    `arrays` says whether names may stand in brackets. Raises WrongPathError.
    """
    names: list[str] = []
    tokens = iter(_TOKEN.findall(path))
    for token in tokens:
        if token == "[" and arrays:
            name = _read_quoted(tokens)
        elif token == "[":
            raise WrongPathError("array notation is not allowed")
        elif token != ".":
            raise WrongPathError(f"expected [ or . but got: {token[:_SHOWN]}")
        else:
            name = _next(tokens)
        schema = _step(schema, name)
        names.append(name)
    return tuple(names), schema


def _next(tokens: Iterator[str]) -> str:
    for token in tokens:
        return token
    raise WrongPathError("unexpected end of JSON path")


def _read_quoted(tokens: Iterator[str]) -> str:
    """Returns the name between a bracket, which has been read, and the next."""
    quoted = _next(tokens)
    if len(quoted) < 2 or quoted[0] != "'" or quoted[-1] != "'":
        raise WrongPathError(f"expected single quoted string but got {quoted[:_SHOWN]}")
    closing = _next(tokens)
    if closing != "]":
        raise WrongPathError(f"expected ] but got {closing[:_SHOWN]}")
    return re.sub(r"\\(.)", lambda match: _ESCAPED.get(match[1], match[1]), quoted[1:-1])


def _step(schema: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """Returns the schema of a field, or of a map's values. Raises WrongPathError."""
    properties = schema.get("properties")
    inner = schema.get("additionalProperties")
    if properties is not None:
        inner = properties.get(name) if isinstance(properties, Mapping) else None
    if not isinstance(inner, Mapping):
        raise WrongPathError(_NO_FIELD)
    return inner
