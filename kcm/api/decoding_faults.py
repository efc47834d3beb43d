"""Turns what pydantic finds wrong with JSON into the errors of `kcm.errors`."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any, cast

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from kcm import errors

MOST_FAULTS = 10_000  # the most faults that are collected; each takes a kilobyte
SHOWN = 200  # the most characters of bad input that a message shows
_MOST_CAUSES = 20


def describe_whole(error: ValidationError) -> errors.BadRequest | None:
    """Returns the error of text that is no JSON object, None if it is one."""
    first = error.errors(include_url=False)[0]
    if first["type"] == "json_invalid":
        return errors.NotJson.because(str(first["ctx"]["error"]))
    if not first["loc"]:
        return errors.BadRequest(
            f"the object is not a JSON object but {_json_type(first['input'])}"
        )
    return None


def _json_type(value: Any) -> str:
    names = {str: "a string", list: "an array", bool: "a boolean", type(None): "null"}
    return names.get(type(value), "a number")


_TYPE_NAMES = {
    "string": "string",
    "int": "integer",
    "bool": "boolean",
    "list": "array",
    "dict": "object",
    "model": "object",
}


def describe_parts(faults: Iterable[ErrorDetails], kind: str, name: str) -> errors.WrongType:
    """Returns the error of an object with these faults in its fields, with the first of them."""
    first_faults = list(faults)[:_MOST_CAUSES]
    causes = [_field_error(fault) for fault in first_faults]
    json_words = [
        _json_word(fault["input"]) if _is_of_type(fault) else "" for fault in first_faults
    ]
    return errors.WrongType(causes, json_words, kind=kind, name=name)


def _is_of_type(fault: ErrorDetails) -> bool:
    return fault["type"] != "value_error" and fault["type"].partition("_")[0] in _TYPE_NAMES


_JSON_WORDS: dict[type, str] = {
    str: "string", bool: "bool", list: "array", dict: "object", type(None): "null",
}  # fmt: skip


def _json_word(value: Any) -> str:
    return _JSON_WORDS.get(type(value), "number")


def _field_error(fault: ErrorDetails) -> errors.FieldError:
    category, _, _ = fault["type"].partition("_")
    if fault["type"] == "value_error":
        detail = str(fault["ctx"]["error"])
    elif category in _TYPE_NAMES:
        detail = f"must be of type {_TYPE_NAMES[category]}"
    else:
        detail = fault["msg"].replace("Input should", "must")
    return errors.FieldError("Invalid value", field_path(fault["loc"]), _bad_value(fault), detail)


def _bad_value(fault: ErrorDetails) -> Any:
    """Returns the rejected value of a fault, or the JSON of a list or dict.

    Text is cut to SHOWN characters.
    """
    value = fault["input"]
    if isinstance(value, dict | list):
        return json.dumps(value, default=str)[:SHOWN]
    return value[:SHOWN] if isinstance(value, str) else value


_MAPS = frozenset(
    {
        "allocatable",
        "allocatedResources",
        "annotations",
        "capacity",
        "labels",
        "limits",
        "matchLabels",
        "nodeSelector",
        "overhead",
        "requests",
    }
)
_PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9]*")


def field_path(location: Iterable[int | str]) -> str:
    """Returns a location as upstream prints it: `spec.containers[0].resources.limits[cpu]`."""
    path, parent = "", ""
    for step in location:
        if isinstance(step, int) or parent in _MAPS or not _PLAIN.fullmatch(step):
            path += f"[{step}]"
        else:
            path += f".{step}" if path else step
        parent = str(step)
    return path


def find_name(loaded: Any) -> str:
    """Returns the name of an object of JSON values, "" if it has none."""
    metadata = cast("dict[str, Any]", loaded).get("metadata")
    name = metadata.get("name") if isinstance(metadata, dict) else None
    return name[:SHOWN] if isinstance(name, str) else ""
