"""Fields that a schema does not name are dropped before an object is stored.

Guarantees: nothing is changed in place; what has nothing to drop is returned as it is.
Source: staging/src/k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning/algorithm.go,
Kubernetes 1.33.
"""

from __future__ import annotations

from typing import Any

from kcm.api.structural_schema import Schema


def prune(
    value: Any,
    schema: Schema | None,
    path: str = "",
    dropped: list[str] | None = None,
    *,
    keeps: bool = False,
) -> Any:
    """A value without what its schema does not name; the paths that go are added to `dropped`.

    `keeps`: what the value itself has beyond its schema stays, as for the items of a list that
    preserves unknown fields.
    """
    dropped = [] if dropped is None else dropped
    keeps = keeps or (schema is not None and schema.preserve)
    if schema is None and keeps:
        return value
    if isinstance(value, dict):
        return _map(value, schema, path, dropped, keeps=keeps)
    if isinstance(value, list):
        inner = schema.items if schema is not None else None
        found = [
            prune(item, inner, f"{path}[{n}]", dropped, keeps=keeps) for n, item in enumerate(value)
        ]
        return found if _differs(found, value) else value
    return value


def root(body: dict[str, Any], schema: Schema, dropped: list[str] | None = None) -> dict[str, Any]:
    """As `prune`, for an object: apiVersion, kind and metadata stay as they are."""
    dropped = [] if dropped is None else dropped
    return _map(body, schema, "", dropped, is_root=True, keeps=schema.preserve)


def _map(
    value: dict[str, Any], schema: Schema | None, path: str, dropped: list[str],
    *, is_root: bool = False, keeps: bool = False,
) -> dict[str, Any]:  # fmt: skip
    found: dict[str, Any] = {}
    for name, inner in value.items():
        where = f"{path}.{name}" if path else name
        if schema is None:
            dropped.append(where)
        elif schema.has_meta(name, is_root):
            found[name] = inner
        elif (known := schema.field(name)) is not None:
            found[name] = prune(inner, known, where, dropped)
        elif keeps:
            found[name] = inner
        elif schema.open:
            found[name] = prune(inner, None, where, dropped)
        else:
            dropped.append(where)
    same = len(found) == len(value) and all(found[name] is value[name] for name in found)
    return value if same else found


def _differs(found: list[Any], value: list[Any]) -> bool:
    return any(new is not old for new, old in zip(found, value, strict=True))
