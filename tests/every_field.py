"""Objects with every field of their kind, and in each struct one that no kind has."""

from __future__ import annotations

import types
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Union, get_args, get_origin

from pydantic import TypeAdapter, ValidationError
from pydantic_core import from_json, to_json

from kcm.api.scheme import Resource
from kcm.apimachinery.base import Model

_DEEPEST = 14  # schemas contain schemas
_LEAVES = ("word", 7, True, 1.5, "3", "2026-01-02T03:04:05Z", "2026-01-02T03:04:05.000000Z", "YQ==")
LATER = {"x": [1, {"y": None}]}  # with a null, which an update must not take away either


def build_every_field(resource: Resource) -> dict[str, Any]:
    """Returns the JSON of an object with all fields of the kind, as a later server might send it.

    No field has a value by which the object would be valid.
    """
    body = _struct(resource.model, 0)
    meta = {"name": "a", "uid": "uid-1", "resourceVersion": "41", "deletionTimestamp": None}
    if resource.namespaced:
        meta["namespace"] = "n"
    head = {"apiVersion": resource.api_version, "kind": resource.kind}
    return {**body, **head, "metadata": {**_without(body["metadata"], meta), **_given(meta)}}


def _without(body: Mapping[str, Any], names: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in body.items() if name not in {*names, "namespace"}}


def _given(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}


def _struct(model: type[Model], depth: int) -> dict[str, Any]:
    filled = dict(_fields(model, depth)) if depth < _DEEPEST else {}
    return {**filled, "fieldOfLater": LATER}


def _fields(model: type[Model], depth: int) -> Iterator[tuple[str, Any]]:
    for name, info in model.model_fields.items():
        value = _value(info.rebuild_annotation(), depth)
        if value is not None:
            yield info.alias or name, value


def _value(annotation: Any, depth: int) -> Any:
    """Returns a value of a type, None where the type is nested too deep."""
    if isinstance(annotation, type) and issubclass(annotation, Model):
        return _struct(annotation, depth + 1) if depth + 1 < _DEEPEST else None
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin in (Union, types.UnionType):
        inner = [each for each in arguments if each is not types.NoneType]
        return _value(inner[0], depth) if len(inner) == 1 else _leaf(annotation)
    if origin is list:
        item = _value(arguments[0], depth)
        return None if item is None else [item]
    if origin is dict:
        item = _value(arguments[1], depth)
        return None if item is None else {"key": item}
    if origin is Annotated and get_origin(arguments[0]) is not None:
        return _value(arguments[0], depth)
    if origin is Annotated and isinstance(arguments[0], type) and issubclass(arguments[0], Model):
        return _value(arguments[0], depth)
    return _leaf(annotation)


def _leaf(annotation: Any) -> Any:
    """Returns the first value that the type gives back as it was."""
    adapter: TypeAdapter[Any] = TypeAdapter(annotation)
    for value in _LEAVES:
        try:
            read = adapter.validate_json(to_json(value))
        except ValidationError:
            continue
        if from_json(adapter.dump_json(read, by_alias=True)) == value:
            return value
    raise AssertionError(f"no value for {annotation}")
