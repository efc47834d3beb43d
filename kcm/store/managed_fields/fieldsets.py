"""Sets of fields as in managedFields: the paths in the JSON of an object.

A path is a tuple of steps: `f:name`, `k:{"name":"c"}` (an item of a list by its keys), `v:"x"` (a
value of a set). A list without a merge key is one field.

Source: sigs.k8s.io/structured-merge-diff/v4/fieldpath, Kubernetes 1.33.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from operator import itemgetter
from typing import Any

from kcm.apiextensions import structure
from kcm.apiextensions.structure import Field, Struct
from kcm.apimachinery.base import MergeKey, MergeSet

Path = tuple[str, ...]
Paths = frozenset[Path]

# Fields that the server sets have no manager.
_UNOWNED = frozenset(
    ("f:metadata", f"f:{name}")
    for name in (
        "name", "namespace", "uid", "resourceVersion", "generation", "creationTimestamp",
        "selfLink", "managedFields",
    )
) | {("f:apiVersion",), ("f:kind",), ("f:metadata",)}  # fmt: skip
_BOTH = "*"
_HOLDERS = frozenset({dict, list})
_NAME = itemgetter(0)
_TEXT = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def paths(
    body: Mapping[str, Any], model: Struct, subresource: str = _BOTH, *, nodes: bool = False
) -> Paths:
    """Returns the paths of the fields of an object that managers own.

    `subresource` is "status" for those of the status, "" for all others, by default both. With
    `nodes`, the structs, maps and lists that contain fields are included if they are optional: an
    update owns those that it created, an apply only the fields that it has.
    """
    return frozenset(
        path
        for path in walk_struct(body, model, (), nodes=nodes)
        if is_owned(path) and _is_of(path, subresource)
    )


def is_owned(path: Path) -> bool:
    """Reports whether managers own the field, rather than the server."""
    return path[:2] not in _UNOWNED


def _is_of(path: Path, subresource: str) -> bool:
    return subresource == _BOTH or (path[0] == "f:status") is (subresource == "status")


def walk_struct(
    value: Mapping[str, Any], model: Struct, at: Path, *, nodes: bool
) -> Iterator[Path]:
    """Yields the paths of a struct or map at the path `at`. `nodes` is as in `paths`."""
    for name, inner in value.items():
        declared = structure.field(model, name)
        yield from walk_field(inner, declared, (*at, f"f:{name}"), nodes=nodes)


def walk_field(value: Any, field: Field | None, at: Path, *, nodes: bool) -> Iterator[Path]:
    """Yields the paths of a field's value at the path `at`. `nodes` is as in `paths`."""
    struct = field.shape.struct if field else None
    merge = field.merge if field else None
    if isinstance(value, dict) and value and not (field and field.atomic):
        if nodes and (field is None or field.optional):
            yield at
        yield from walk_struct(value, struct, at, nodes=nodes)
    elif isinstance(value, list) and value and merge is not None:
        if nodes and field is not None and field.optional:
            yield at
        yield from walk_items(key_items(value, merge), struct, at, nodes=nodes)
    else:
        yield at


def walk_items(
    items: Iterable[tuple[str, Any]], struct: Struct, at: Path, *, nodes: bool
) -> Iterator[Path]:
    """Yields the paths of a list's items, which are given as pairs of step and item."""
    for key, item in items:
        yield (*at, key)
        if isinstance(item, dict) and not (struct and struct.kubernetes_atomic):
            yield from walk_struct(item, struct, (*at, key), nodes=nodes)


def add_holders(owned: Paths) -> Paths:
    """Returns the paths, with those of all structs, maps and lists that contain them."""
    both = set(owned)
    for path in owned:
        # If one is there, those above it are there too, or are added for that path.
        for n in range(len(path) - 1, 0, -1):
            if path[:n] in both:
                break
            both.add(path[:n])
    return frozenset(both)


def key_items(items: Sequence[Any], merge: MergeKey | MergeSet) -> list[tuple[str, Any]]:
    """Returns the items of a list, each with the step that identifies it."""
    if isinstance(merge, MergeSet):
        return [(f"v:{_text(item)}", item) for item in items]
    return [(_key(item, merge), item) for item in items]


def _key(item: Any, merge: MergeKey) -> str:
    values: dict[str, Any] = item if isinstance(item, dict) else {}
    if merge.key_defaults:
        values = {**dict(merge.key_defaults), **values}
    if not merge.map_keys:
        return f'k:{{"{merge.key}":{_text(values.get(merge.key))}}}'
    parts = [f'"{name}":{_text(values.get(name))}' for name in sorted(merge.map_keys)]
    return f"k:{{{','.join(parts)}}}"


def _text(value: Any) -> str:
    return str(value) if value.__class__ is int else _TEXT.encode(value)


class Values:
    """The values at the paths of an object, or of a list with merge keys. Look-ups are cached."""

    def __init__(self, body: Any, model: Struct, merge: MergeKey | MergeSet | None = None) -> None:
        self._places: dict[Path, _Place] = {(): _Place(body, model, merge)}

    def at(self, path: Path) -> Any:
        """Returns the value at a path, or None if there is none."""
        return self._place(path).value

    def _place(self, path: Path) -> _Place:
        length = next(n for n in range(len(path), -1, -1) if path[:n] in self._places)
        place = self._places[path[:length]]
        for n in range(length, len(path)):
            place = place.below(path[n])
            self._places[path[: n + 1]] = place
        return place


@dataclass
class _Place:
    """A value at a path, with its model and its merge keys."""

    value: Any
    model: Struct
    merge: MergeKey | MergeSet | None = None

    @cached_property
    def items(self) -> Mapping[str, Any]:
        """The items of a list by their steps."""
        if not isinstance(self.value, list) or self.merge is None:
            return {}
        return dict(key_items(self.value, self.merge))

    def below(self, step: str) -> _Place:
        if not step.startswith("f:"):
            return _Place(self.items.get(step), self.model)
        if not isinstance(self.value, Mapping):
            return _Place(None, None)
        field = structure.field(self.model, step[2:])
        model, merge = (field.shape.struct, field.merge) if field else (None, None)
        return _Place(self.value.get(step[2:]), model, merge)


def merge_values(live: Any, applied: Any, model: Struct) -> Any:
    """Returns `live` with all values of `applied`. Neither is changed."""
    if not (isinstance(live, Mapping) and isinstance(applied, Mapping)):
        return applied
    result = dict(live)
    for name, value in applied.items():
        field = structure.field(model, name)
        present = live.get(name)
        if field is None:
            result[name] = merge_values(present, value, None)
        elif field.atomic:
            result[name] = value
        elif field.merge and isinstance(value, list) and isinstance(present, list):
            result[name] = _merge_items(present, value, field.merge, field.shape.struct)
        else:
            result[name] = merge_values(present, value, field.shape.struct)
    return result


def _merge_items(
    live: list[Any], applied: list[Any], merge: MergeKey | MergeSet, model: Struct
) -> list[Any]:
    items = dict(key_items(live, merge))
    for key, item in key_items(applied, merge):
        whole = key not in items or (model is not None and model.kubernetes_atomic)
        items[key] = item if whole else merge_values(items[key], item, model)
    return list(items.values())


def remove_paths(body: Any, gone: Paths, model: Struct) -> Any:
    """Returns the object without these fields, and without maps and lists that become empty."""
    below: dict[str, set[Path]] = {}
    for path in gone:
        below.setdefault(path[0], set()).add(path[1:])
    rest = dict(body)
    for step, rests in below.items():
        name = step[2:]
        if name not in rest:
            continue
        if () in rests:
            del rest[name]
            continue
        field = structure.field(model, name)
        inner = field.shape.struct if field else None
        value = rest[name]
        if isinstance(value, list):
            value = _remove_from_items(value, rests, field.merge if field else None, inner)
        elif isinstance(value, Mapping):
            value = remove_paths(value, frozenset(rests), inner)
        rest[name] = value
        if value in ({}, []):
            del rest[name]
    return rest


def _remove_from_items(
    items: list[Any], gone: set[Path], merge: MergeKey | MergeSet | None, model: Struct
) -> list[Any]:
    if merge is None:
        return items
    below: dict[str, set[Path]] = {}
    for path in gone:
        if path:
            below.setdefault(path[0], set()).add(path[1:])
    rest = []
    for key, item in key_items(items, merge):
        rests = below.get(key, set())
        if () not in rests:
            rest.append(remove_paths(item, frozenset(rests), model) if rests else item)
    return rest


# --- fieldsV1


def encode_creation(body: Mapping[str, Any], model: Struct) -> dict[str, Any]:
    """Returns the fieldsV1 of all fields of a new object, except its status.

    It is equal to `encode_paths` of `paths` with nodes, but takes one walk, since it is part of
    every create.
    """
    tree = _tree(body, model)
    for step in ("f:apiVersion", "f:kind", "f:status"):
        tree.pop(step, None)
    metadata = tree.get("f:metadata", {})
    for step in [step for step in metadata if ("f:metadata", step) in _UNOWNED]:
        del metadata[step]
    if not metadata:
        tree.pop("f:metadata", None)
    return tree


def _tree(value: Mapping[str, Any], model: Struct) -> dict[str, Any]:
    return {
        f"f:{name}": _branch(inner, structure.field(model, name))
        if inner.__class__ in _HOLDERS
        else {}
        for name, inner in sorted(value.items(), key=_NAME)
    }


def _branch(value: Any, field: Field | None) -> dict[str, Any]:
    struct = field.shape.struct if field else None
    tree: dict[str, Any]
    if isinstance(value, dict) and value and not (field and field.atomic):
        tree = _tree(value, struct)
    elif isinstance(value, list) and value and field is not None and field.merge is not None:
        items = sorted(key_items(value, field.merge), key=_NAME)  # two may have one key
        tree = {key: _item(item, struct) for key, item in items}
    else:
        return {}
    return {".": {}} | tree if field is None or field.optional else tree


def _item(value: Any, struct: Struct) -> dict[str, Any]:
    if not isinstance(value, dict) or (struct and struct.kubernetes_atomic):
        return {}
    tree = _tree(value, struct)
    return {".": {}} | tree if tree else {}


def encode_paths(owned: Paths) -> dict[str, Any]:
    """Returns the fieldsV1 of the paths."""
    root: dict[str, Any] = {}
    for path in sorted(owned):
        at = root
        for step in path:
            at = at.setdefault(step, {})
        at["."] = {}
    return _prune(root)


def _prune(node: dict[str, Any]) -> dict[str, Any]:
    """Returns the tree with empty objects as leaves, and with `.` only beside other steps."""
    if node == {".": {}}:
        return {}
    return {step: {} if step == "." else _prune(inner) for step, inner in node.items()}


def parse_paths(fields: Any) -> Paths:
    """Returns the paths in fieldsV1. Malformed parts are ignored."""
    paths: set[Path] = set()
    if isinstance(fields, dict):
        _read(fields, (), paths)
    return frozenset(paths) - {()}


def _read(node: Any, at: Path, paths: set[Path]) -> None:
    if not isinstance(node, dict) or not node or "." in node:
        paths.add(at)
    if isinstance(node, dict):
        for step, inner in node.items():
            if step != ".":
                _read(inner, (*at, step), paths)


def format_path(path: Path) -> str:
    """Returns a path as text for conflicts, such as `.spec.containers[name="c"].image`."""
    return "".join(_step(step) for step in path)


def _step(step: str) -> str:
    kind, text = step[:2], step[2:]
    if kind == "f:":
        return f".{text}"
    if kind == "v:":
        return f"[={text}]"
    keys = json.loads(text)
    return "[" + ",".join(f"{name}={_text(value)}" for name, value in keys.items()) + "]"
