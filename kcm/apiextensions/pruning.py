"""Removes fields that the schema does not have, before an object is stored.

Values are not changed in place. A value that needs no pruning is returned as it is.

Source: staging/src/k8s.io/apiextensions-apiserver/pkg/apiserver/schema/{pruning,objectmeta},
Kubernetes 1.36.
"""

from __future__ import annotations

from typing import Any

from kcm.api.custom.structural_schema import StructuralSchema
from kcm.apiextensions.structure import Shape, field
from kcm.apimachinery.meta_v1 import ObjectMeta

_METADATA = Shape("struct", ObjectMeta)


def prune(
    value: Any,
    schema: StructuralSchema | None,
    path: str = "",
    dropped: list[str] | None = None,
    *,
    keeps: bool = False,
) -> Any:
    """Returns a value without the fields that its schema does not have.

    The paths of removed fields are appended to `dropped`. With `keeps`, unknown fields of the value
    itself stay, as in the items of a list that preserves unknown fields.
    """
    dropped = [] if dropped is None else dropped
    keeps = keeps or (schema is not None and schema.preserve)
    if schema is None and keeps:
        return value
    if isinstance(value, dict):
        return _map(value, schema, path, dropped, keeps=keeps)
    if isinstance(value, list):
        inner = schema.items if schema is not None else None
        items = [
            prune(item, inner, f"{path}[{n}]", dropped, keeps=keeps) for n, item in enumerate(value)
        ]
        return items if _differs(items, value) else value
    return value


def root(
    body: dict[str, Any], schema: StructuralSchema, dropped: list[str] | None = None
) -> dict[str, Any]:
    """Prunes a whole object, whose apiVersion, kind and metadata stay as they are. The metadata of
    objects within it lose the fields that no metadata have.

    The paths of removed fields are appended to `dropped`.
    """
    dropped = [] if dropped is None else dropped
    return _map(body, schema, "", dropped, is_root=True, keeps=schema.preserve)


def _map(
    value: dict[str, Any], schema: StructuralSchema | None, path: str, dropped: list[str],
    *, is_root: bool = False, keeps: bool = False,
) -> dict[str, Any]:  # fmt: skip
    kept: dict[str, Any] = {}
    for name, inner in value.items():
        where = f"{path}.{name}" if path else name
        if schema is None:
            dropped.append(where)
        elif schema.has_meta(name, is_root):
            is_embedded = name == "metadata" and not is_root
            kept[name] = _metadata(inner, _METADATA, where, dropped) if is_embedded else inner
        elif (part := schema.field(name)) is not None:
            kept[name] = prune(inner, part, where, dropped)
        elif keeps:
            kept[name] = inner
        elif schema.open:
            kept[name] = prune(inner, None, where, dropped)
        else:
            dropped.append(where)
    same = len(kept) == len(value) and all(kept[name] is value[name] for name in kept)
    return value if same else kept


def _metadata(value: Any, shape: Shape, path: str, dropped: list[str]) -> Any:
    """Returns the metadata of an embedded object, or a part of it, without unknown fields."""
    if isinstance(value, list) and shape.item is not None:
        items = [
            _metadata(item, shape.item, f"{path}[{n}]", dropped) for n, item in enumerate(value)
        ]
        return items if _differs(items, value) else value
    if not isinstance(value, dict) or shape.model is None:
        return value
    kept: dict[str, Any] = {}
    for name, inner in value.items():
        declared = field(shape.model, name)
        if declared is None:
            dropped.append(f"{path}.{name}")
        else:
            kept[name] = _metadata(inner, declared.shape, f"{path}.{name}", dropped)
    return value if kept == value else kept


def _differs(pruned: list[Any], value: list[Any]) -> bool:
    return any(new is not old for new, old in zip(pruned, value, strict=True))
