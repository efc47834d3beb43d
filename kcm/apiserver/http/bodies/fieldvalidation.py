"""The parameter fieldValidation: reports unknown and duplicate fields of a request body.

As upstream, the faults of a body are in the order of its text, each once, with the whole path.

Source: staging/src/k8s.io/apiserver/pkg/endpoints/handlers/{create,fieldmanager}.go,
vendor/sigs.k8s.io/json (UnmarshalStrict), and schemaCoercingDecoder in
staging/src/k8s.io/apiextensions-apiserver/pkg/apiserver/customresource_handler.go, Kubernetes 1.36.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any

from pydantic_core import from_json, to_json

from kcm import errors
from kcm.api.custom.kinds import CustomObject
from kcm.apiextensions import objects, structure
from kcm.apiextensions.structure import Shape
from kcm.apimachinery.meta_v1 import KubeObject, ObjectMeta

MODES = ("Ignore", "Warn", "Strict")
MOST = 20  # faults of one body that are reported
_ANY = Shape("any")
_METADATA = Shape("struct", ObjectMeta)


def mode_of(word: str) -> str:
    """Returns the mode that the parameter's value names, Warn for "". Raises BadRequest."""
    if word and word not in MODES:
        supported = ", ".join(f'"{mode}"' for mode in MODES)
        raise errors.BadRequest(
            f'fieldValidation: Unsupported value: "{word}": supported values: {supported}'
        )
    return word or "Warn"


def check(
    obj: KubeObject, kept: KubeObject, body: bytes, mode: str, repeated: Sequence[str] = ()
) -> list[str]:
    """Returns warnings about duplicate and unknown fields of an object.

    `kept` is the object without its unknown fields, the same one if it has none. `body` is its
    JSON, and `repeated` has what was said about the YAML of which that was made. Raises BadRequest
    in mode Strict.
    """
    if mode == "Ignore":
        return []
    faults = [*describe_repeated(repeated), *list_faults(obj, kept, body)]
    if faults and mode == "Strict":
        raise errors.BadRequest(
            f'{obj.kind} in version "{obj.api_version.rpartition("/")[2]}" cannot be handled as '
            f"a {obj.kind}: {join(faults)}"
        )
    return faults


def join(faults: Iterable[str]) -> str:
    """Returns the text of an error about these faults."""
    return f"strict decoding error: {', '.join(faults)}"


def describe_repeated(repeated: Sequence[str]) -> list[str]:
    """Returns what upstream's YAML parser says about keys that a mapping has twice."""
    return ["yaml: unmarshal errors:\n  " + "\n  ".join(repeated[:MOST])] if repeated else []


def list_faults(obj: KubeObject, kept: KubeObject, body: bytes) -> list[str]:
    """Returns a message for each unknown or duplicate field, at most MOST."""
    if isinstance(obj, CustomObject):
        faults = duplicates(body)
        if kept is not obj:
            faults += _list_unknown_of_custom(obj)
        return faults[:MOST]
    if kept is obj:
        return duplicates(body)
    return _unique(_find_faults(_load(body), Shape("struct", type(obj)), ""))


def unknown_in(kept: KubeObject, obj: KubeObject) -> list[str]:
    """Returns a message for each unknown field of an object that was made of several bodies."""
    if kept is obj:
        return []
    if isinstance(obj, CustomObject):
        return _list_unknown_of_custom(obj)[:MOST]
    text = obj.model_dump_json(by_alias=True, exclude_none=True)
    return _unique(_find_faults(_load(text.encode()), Shape("struct", type(obj)), ""))


def duplicates(body: bytes) -> list[str]:
    """Returns a message for each field that occurs twice in one JSON object, at most MOST."""
    return [] if _is_unchanged_by_parsing(body) else _unique(_find_faults(_load(body), _ANY, ""))


def _list_unknown_of_custom(obj: CustomObject) -> list[str]:
    """Returns the unknown fields in upstream's order: those of the metadata first."""
    text = obj.metadata.model_dump_json(by_alias=True, exclude_none=True)
    faults = _find_faults(_load(text.encode()), _METADATA, "metadata")
    return [*faults, *map(_unknown, sorted(objects.list_unknown_fields(obj)))]


def _unknown(path: str) -> str:
    return f'unknown field "{path}"'


class _Pairs(list[tuple[str, Any]]):
    """The fields of a JSON object, in the order of the text."""


def _load(body: bytes) -> Any:
    try:
        return json.loads(body, object_pairs_hook=_Pairs)
    except (ValueError, RecursionError):
        return None  # it was decoded; what only this parser cannot read has no faults


def _find_faults(value: Any, shape: Shape, path: str) -> Iterator[str]:
    """Yields a message for each fault of a value at a path, in the order of the text."""
    if isinstance(value, _Pairs):
        yield from _find_in_object(value, shape, path)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _find_faults(item, shape.item or _ANY, f"{path}[{index}]")


def _find_in_object(pairs: _Pairs, shape: Shape, path: str) -> Iterator[str]:
    seen: set[str] = set()
    for name, inner in pairs:
        where = f"{path}.{name}" if path else name
        inner_shape: Shape | None = shape.item or _ANY
        if shape.kind == "struct" and shape.model is not None:
            field = structure.field(shape.model, name)
            inner_shape = field.shape if field else None
        if inner_shape is None:
            yield _unknown(where)
            continue
        if name in seen:
            yield f'duplicate field "{where}"'
        seen.add(name)
        yield from _find_faults(inner, inner_shape, where)


def _unique(faults: Iterator[str]) -> list[str]:
    """Returns the first faults, each once."""
    return list(islice(dict.fromkeys(islice(faults, MOST * MOST)), MOST))


def _is_unchanged_by_parsing(body: bytes) -> bool:
    """Reports whether the body is compact JSON that parsing and formatting do not change.

    Such a body has no duplicate fields, since they would be lost. Most clients send compact JSON,
    and this check takes a fraction of the time of a parser that calls back for each object.
    """
    try:
        return bool(to_json(from_json(body)) == body.rstrip())
    except ValueError:
        return False
