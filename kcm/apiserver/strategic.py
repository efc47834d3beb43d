"""Strategic merge patch: lists of structs merge by key, as the models' marks say.

Guarantees: neither argument is changed; directives never end up in the result.
Source: staging/src/k8s.io/apimachinery/pkg/util/strategicpatch/patch.go, Kubernetes 1.33.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from kcm import errors
from kcm.api import structure
from kcm.api.base import MergeKey, MergeSet
from kcm.api.structure import Struct

_PATCH = "$patch"
_RETAIN = "$retainKeys"
_ORDER = "$setElementOrder/"
_REMOVE = "$deleteFromPrimitiveList/"

Json = Mapping[str, Any]


def apply(target: Json, patch: Json, model: Struct) -> dict[str, Any]:
    """`target` with `patch` applied. Raises BadRequest for a directive that makes no sense."""
    directive = patch.get(_PATCH)
    if directive == "replace":
        return apply({}, {name: value for name, value in patch.items() if name != _PATCH}, None)
    if directive == "delete":
        return {}
    if directive not in {None, "merge"}:
        raise errors.BadRequest(f"Unknown patch type {directive!r} found in map")
    merged = _retained(dict(target), patch)
    for name, value in patch.items():
        if not name.startswith("$"):
            _set(merged, name, value, patch, model)
    _remove_values(merged, patch)
    _order_unpatched(merged, patch, model)
    return merged


def _retained(merged: dict[str, Any], patch: Json) -> dict[str, Any]:
    kept = patch.get(_RETAIN)
    if kept is None:
        return merged
    named = [name for name, value in patch.items() if name[:1] != "$" and value is not None]
    if not isinstance(kept, list) or not all(name in kept for name in named):
        raise errors.BadRequest("invalid $retainKeys: it must list every field that is set")
    return {name: value for name, value in merged.items() if name in kept}


def _set(merged: dict[str, Any], name: str, value: Any, patch: Json, model: Struct) -> None:
    if value is None:
        merged.pop(name, None)
        return
    field = structure.field(model, name)
    present = merged.get(name)
    if isinstance(value, Mapping):
        base = present if isinstance(present, Mapping) else {}
        merged[name] = apply(base, value, field.shape.struct if field else None)
    elif isinstance(value, list) and field is not None and field.patch_merge is not None:
        items = present if isinstance(present, list) else []
        order = _order(patch, name)
        merged[name] = _merged_list(items, value, order, field.patch_merge, field.shape.struct)
    else:
        merged[name] = _cleaned(value)


def _order(patch: Json, name: str) -> list[Any] | None:
    order = patch.get(_ORDER + name)
    if order is not None and not isinstance(order, list):
        raise errors.BadRequest(f"{_ORDER}{name} must be a list")
    return order


def _merged_list(
    present: Sequence[Any],
    patch: Sequence[Any],
    order: list[Any] | None,
    merge: MergeKey | MergeSet,
    model: Struct,
) -> list[Any]:
    if isinstance(merge, MergeSet):
        wanted = list(present) + [value for value in patch if value not in present]
        return _ordered(wanted, present, order, lambda value: value)
    if any(isinstance(item, Mapping) and item.get(_PATCH) == "replace" for item in patch):
        rest = [item for item in patch if item.get(_PATCH) != "replace"]
        return [_cleaned(item) for item in rest]
    merged = list(present)
    for item in patch:
        _merge_item(merged, item, merge.key, model)
    return _ordered(merged, present, _keys(order, merge.key), _reader(merge.key))


def _merge_item(merged: list[Any], item: Any, key: str, model: Struct) -> None:
    if not isinstance(item, Mapping) or key not in item:
        raise errors.BadRequest(f"map: {item} does not contain declared merge key: {key}")
    places = [n for n, found in enumerate(merged) if _reader(key)(found) == item[key]]
    if item.get(_PATCH) == "delete":
        merged[:] = [found for n, found in enumerate(merged) if n not in places]
    elif places:
        merged[places[0]] = apply(merged[places[0]], item, model)
    else:
        merged.append(apply({}, item, model))


def _reader(key: str) -> Callable[[Any], Any]:
    return lambda item: item.get(key) if isinstance(item, Mapping) else None


def _keys(order: list[Any] | None, key: str) -> list[Any] | None:
    return None if order is None else [_reader(key)(item) for item in order]


def _ordered(
    merged: list[Any],
    present: Sequence[Any],
    order: list[Any] | None,
    key: Callable[[Any], Any],
) -> list[Any]:
    """The list in the patch's order; what only the server has keeps its place among them."""
    if order is None:
        return merged
    ours = sorted((i for i in merged if key(i) in order), key=lambda item: order.index(key(item)))
    theirs = [item for item in merged if key(item) not in order]
    before = [key(item) for item in present]
    found: list[Any] = []
    while ours and theirs:
        known = key(theirs[0]) in before and key(ours[0]) in before
        first = known and before.index(key(theirs[0])) < before.index(key(ours[0]))
        found.append((theirs if first else ours).pop(0))
    return found + ours + theirs


def _remove_values(merged: dict[str, Any], patch: Json) -> None:
    for name, values in patch.items():
        if name.startswith(_REMOVE) and isinstance(values, list):
            field = name.removeprefix(_REMOVE)
            present = merged.get(field)
            if isinstance(present, list):
                merged[field] = [value for value in present if value not in values]


def _order_unpatched(merged: dict[str, Any], patch: Json, model: Struct) -> None:
    """Lists that a patch only reorders."""
    for name in patch:
        field_name = name.removeprefix(_ORDER)
        if not name.startswith(_ORDER) or field_name in patch:
            continue
        present = merged.get(field_name)
        field = structure.field(model, field_name)
        if not isinstance(present, list) or field is None or field.patch_merge is None:
            continue
        order = _order(patch, field_name)
        if isinstance(field.patch_merge, MergeKey):
            key = field.patch_merge.key
            merged[field_name] = _ordered(present, present, _keys(order, key), _reader(key))
        else:
            merged[field_name] = _ordered(present, present, order, lambda value: value)


def _cleaned(value: Any) -> Any:
    """A value without directives and nulls."""
    if isinstance(value, Mapping):
        return apply({}, value, None)
    if isinstance(value, list):
        return [
            _cleaned(item)
            for item in value
            if not (isinstance(item, Mapping) and item.get(_PATCH) == "delete")
        ]
    return value
