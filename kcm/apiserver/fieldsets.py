"""Sets of fields, as managedFields has them: which paths an object's JSON has.

A path is a tuple of steps: `f:name`, `k:{"name":"c"}` (an item of a list by its
keys), `v:"x"` (a value of a set). Lists without a mark are one field.

Source: sigs.k8s.io/structured-merge-diff/v4/fieldpath, Kubernetes 1.33.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from kcm.api import structure
from kcm.api.base import MergeKey, MergeSet, Model
from kcm.api.core_v1 import LocalObjectReference, ObjectReference
from kcm.api.meta_v1 import LabelSelector

Path = tuple[str, ...]
Paths = frozenset[Path]

_Struct = type[Model] | None
_ATOMIC = (LabelSelector, ObjectReference, LocalObjectReference)  # x-kubernetes-map-type: atomic
_ATOMIC_MAPS = frozenset({"f:nodeSelector", "f:fieldsV1"})
_KEY_DEFAULTS = {"protocol": "TCP"}
# What the server keeps is nobody's.
_UNOWNED = frozenset(
    ("f:metadata", f"f:{name}")
    for name in (
        "name", "namespace", "uid", "resourceVersion", "generation", "creationTimestamp",
        "deletionTimestamp", "deletionGracePeriodSeconds", "selfLink", "generateName",
        "managedFields",
    )
) | {("f:apiVersion",), ("f:kind",)}  # fmt: skip


def paths(body: Mapping[str, Any], model: _Struct, subresource: str) -> Paths:
    """The fields of an object that managers own: of its status, or of everything else."""
    status = subresource == "status"
    return frozenset(
        path
        for path in _walk(body, model, ())
        if (path[0] == "f:status") is status and path[:2] not in _UNOWNED and path not in _UNOWNED
    )


def _walk(value: Any, model: _Struct, at: Path) -> Iterator[Path]:
    if not isinstance(value, Mapping) or not value or _atomic(model, at):
        yield at
        return
    for name, inner in value.items():
        field = structure.field(model, name)
        step = (*at, f"f:{name}")
        merge = field.merge if field else None
        if isinstance(inner, list) and merge is not None:
            for key, item in keyed(inner, merge):
                yield (*step, key)
                if isinstance(item, Mapping):
                    yield from _walk(item, field.shape.struct if field else None, (*step, key))
        else:
            yield from _walk(inner, field.shape.struct if field else None, step)


def _atomic(model: _Struct, at: Path) -> bool:
    return bool(at) and (model in _ATOMIC or at[-1] in _ATOMIC_MAPS)


def keyed(items: Sequence[Any], merge: MergeKey | MergeSet) -> list[tuple[str, Any]]:
    """The items of a list, each behind the step that leads to it."""
    if isinstance(merge, MergeSet):
        return [(f"v:{_text(item)}", item) for item in items]
    return [(_key(item, merge), item) for item in items]


def _key(item: Any, merge: MergeKey) -> str:
    names = merge.map_keys or (merge.key,)
    found = item if isinstance(item, Mapping) else {}
    return f"k:{_text({name: found.get(name, _KEY_DEFAULTS.get(name)) for name in names})}"


def _text(value: Any) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def value_at(body: Any, model: _Struct, path: Path) -> Any:
    """What an object has at a path; None where it has nothing."""
    merge: MergeKey | MergeSet | None = None
    for step in path:
        if step.startswith("f:"):
            if not isinstance(body, Mapping):
                return None
            field = structure.field(model, step[2:])
            body = body.get(step[2:])
            model, merge = (field.shape.struct, field.merge) if field else (None, None)
        else:
            found = dict(keyed(body, merge)) if isinstance(body, list) and merge else {}
            body, merge = found.get(step), None
    return body


def merged(live: Any, applied: Any, model: _Struct) -> Any:
    """`live` with everything that `applied` has; neither is changed."""
    if not (isinstance(live, Mapping) and isinstance(applied, Mapping)) or model in _ATOMIC:
        return applied
    found = dict(live)
    for name, value in applied.items():
        field = structure.field(model, name)
        inner = field.shape.struct if field else None
        present = live.get(name)
        if f"f:{name}" in _ATOMIC_MAPS:
            found[name] = value
        elif field and field.merge and isinstance(value, list) and isinstance(present, list):
            found[name] = _merged_items(present, value, field.merge, inner)
        else:
            found[name] = merged(present, value, inner)
    return found


def _merged_items(
    live: list[Any], applied: list[Any], merge: MergeKey | MergeSet, model: _Struct
) -> list[Any]:
    found = dict(keyed(live, merge))
    for key, item in keyed(applied, merge):
        found[key] = merged(found[key], item, model) if key in found else item
    return list(found.values())


def without(body: Any, gone: Paths, model: _Struct) -> Any:
    """The object without the fields at these paths, and without what that leaves empty."""
    below: dict[str, set[Path]] = {}
    for path in gone:
        below.setdefault(path[0], set()).add(path[1:])
    found = dict(body)
    for step, rests in below.items():
        name = step[2:]
        if name not in found:
            continue
        if () in rests:
            del found[name]
            continue
        field = structure.field(model, name)
        inner = field.shape.struct if field else None
        value = found[name]
        if isinstance(value, list):
            value = _without_items(value, rests, field.merge if field else None, inner)
        elif isinstance(value, Mapping):
            value = without(value, frozenset(rests), inner)
        found[name] = value
        if value in ({}, []):
            del found[name]
    return found


def _without_items(
    items: list[Any], gone: set[Path], merge: MergeKey | MergeSet | None, model: _Struct
) -> list[Any]:
    if merge is None:
        return items
    found = []
    for key, item in keyed(items, merge):
        rests = {path[1:] for path in gone if path and path[0] == key}
        if () in rests:
            continue
        found.append(without(item, frozenset(rests), model) if rests else item)
    return found


# --- fieldsV1


def to_v1(owned: Paths) -> dict[str, Any]:
    """The paths as fieldsV1 has them."""
    root: dict[str, Any] = {}
    for path in sorted(owned):
        at = root
        for step in path:
            at = at.setdefault(step, {})
        at["."] = {}
    return _pruned(root)


def _pruned(node: dict[str, Any]) -> dict[str, Any]:
    """A leaf is an empty object; `.` is kept only beside other steps."""
    if node == {".": {}}:
        return {}
    return {step: {} if step == "." else _pruned(inner) for step, inner in node.items()}


def from_v1(fields: Any) -> Paths:
    """The paths that fieldsV1 names; what is malformed names none."""
    return frozenset(_read(fields, ())) - {()} if isinstance(fields, Mapping) else frozenset()


def _read(node: Any, at: Path) -> Iterator[Path]:
    if not isinstance(node, Mapping) or not node or "." in node:
        yield at
    if isinstance(node, Mapping):
        for step, inner in node.items():
            if step != ".":
                yield from _read(inner, (*at, step))


def shown(path: Path) -> str:
    """A path as conflicts name it: `.spec.containers[name="c"].image`."""
    return "".join(_step(step) for step in path)


def _step(step: str) -> str:
    kind, text = step[:2], step[2:]
    if kind == "f:":
        return f".{text}"
    if kind == "v:":
        return f"[={text}]"
    keys = json.loads(text)
    return "[" + ",".join(f"{name}={_text(value)}" for name, value in keys.items()) + "]"
