"""The parameter fieldValidation: reports unknown and duplicate fields of a request body.

Source: staging/src/k8s.io/apiserver/pkg/endpoints/handlers/{create,fieldmanager}.go and
sigs.k8s.io/json (strict decoding), Kubernetes 1.33.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from functools import cache
from itertools import chain, islice
from typing import Any

from pydantic_core import from_json, to_json

from kcm import errors
from kcm.api.custom.kinds import CustomObject
from kcm.apiextensions import objects, structure
from kcm.apimachinery.base import Model
from kcm.apimachinery.meta_v1 import KubeObject

MODES = ("Ignore", "Warn", "Strict")
_MOST = 20  # faults of one body that are reported


def mode_of(word: str) -> str:
    """Returns the mode that the parameter's value names, Warn for "". Raises BadRequest."""
    if word and word not in MODES:
        supported = ", ".join(f'"{mode}"' for mode in MODES)
        raise errors.BadRequest(
            f'fieldValidation: Unsupported value: "{word}": supported values: {supported}'
        )
    return word or "Warn"


def check(obj: KubeObject, body: bytes, mode: str, present: Collection[str] = ()) -> list[str]:
    """Returns warnings about duplicate and unknown fields of an object. `body` is its JSON.

    Unknown fields whose paths are in `present` are not reported. Raises BadRequest for any of the
    others in mode Strict.
    """
    if mode == "Ignore":
        return []
    extra = (f'unknown field "{path}"' for path in unknown_in(obj) if path not in present)
    faults = list(islice(chain(duplicates(body), extra), _MOST))
    if faults and mode == "Strict":
        listed = ", ".join(faults)
        raise errors.BadRequest(
            f'{obj.kind} in version "{obj.api_version.rpartition("/")[2]}" cannot be handled as '
            f"a {obj.kind}: strict decoding error: {listed}"
        )
    return faults


def unknown_in(obj: KubeObject) -> Iterator[str]:
    """Yields the paths of the fields that an object's kind does not have."""
    if isinstance(obj, CustomObject):
        yield from objects.list_unknown_fields(obj)
        yield from unknown(obj.metadata, "metadata.")
    else:
        yield from unknown(obj)


def unknown(model: Model, path: str = "") -> Iterator[str]:
    """Yields the paths of the fields that a model does not have, after the prefix `path`."""
    # Paths are put together only for the few models that have such fields.
    return _walk(model, path) if _has_unknown(model) else iter(())


def _has_unknown(model: Model) -> bool:
    if model.__pydantic_extra__:
        return True
    values = model.__dict__
    for name, _ in _holders(model.__class__):
        value = values[name]
        if value is None:
            continue
        for part in value if value.__class__ is list else (value,):
            if isinstance(part, Model) and _has_unknown(part):
                return True
    return False


def _walk(model: Model, path: str) -> Iterator[str]:
    for name in model.model_extra or {}:
        yield path + name
    values = model.__dict__
    for name, wire in _holders(type(model)):
        value = values[name]
        if value is None:
            continue
        if value.__class__ is list:
            for index, item in enumerate(value):
                if isinstance(item, Model):
                    yield from _walk(item, f"{path}{wire}[{index}].")
        elif isinstance(value, Model):
            yield from _walk(value, f"{path}{wire}.")


@cache
def _holders(model: type[Model]) -> tuple[tuple[str, str], ...]:
    """Returns the fields that hold structs, as pairs of their names in Python and in JSON."""
    shapes = structure.fields(model)
    wires = ((name, info.alias or name) for name, info in model.model_fields.items())
    return tuple((name, wire) for name, wire in wires if shapes[wire].shape.struct is not None)


def duplicates(body: bytes) -> list[str]:
    """Returns a message for each field that occurs twice in one JSON object."""
    if _is_unchanged_by_parsing(body):
        return []
    faults: list[str] = []

    def pairs(items: list[tuple[str, Any]]) -> None:
        if len({name for name, _ in items}) != len(items):
            seen: set[str] = set()
            for name, _ in items:
                if name in seen:
                    faults.append(f'duplicate field "{name}"')
                seen.add(name)

    try:
        json.loads(body, object_pairs_hook=pairs)
    except (ValueError, RecursionError):
        return []
    return faults


def _is_unchanged_by_parsing(body: bytes) -> bool:
    """Reports whether the body is compact JSON that parsing and formatting do not change.

    Such a body has no duplicate fields, since they would be lost. Most clients send compact JSON,
    and this check takes a fraction of the time of a parser that calls back for each object.
    """
    try:
        return bool(to_json(from_json(body)) == body.rstrip())
    except ValueError:
        return False
