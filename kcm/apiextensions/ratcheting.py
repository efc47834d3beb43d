"""What an update leaves as it was. A schema that was made stricter forbids no update because of
values that were there before and have not changed.

Source: staging/src/k8s.io/apiserver/pkg/cel/common/equality.go and
staging/src/k8s.io/apiextensions-apiserver/pkg/apiserver/validation/ratcheting.go, Kubernetes 1.36.
Departure: faults that do not count for this reason are not told as warnings.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kcm.api.custom.structural_schema import MISSING

ItemKey = tuple[str, ...]


def is_unchanged(new: Any, old: Any) -> bool:
    """Reports whether a JSON value is the old one. Unlike for ==, 1, 1.0 and true differ."""
    return bool(new == old) and _has_same_types(new, old)


def _has_same_types(new: Any, old: Any) -> bool:
    """Reports whether two equal values have the same types in all places."""
    if isinstance(new, dict):
        return all(_has_same_types(inner, old[name]) for name, inner in new.items())
    if isinstance(new, list):
        return all(map(_has_same_types, new, old))
    return type(new) is type(old)


def find_field(old: Any, name: str) -> Any:
    """Returns the old value of a field, MISSING if there was none."""
    return old.get(name, MISSING) if isinstance(old, dict) else MISSING


def index_items(old: Any, keys: Sequence[str]) -> Mapping[ItemKey, Any]:
    """Returns the old items of a list of type map, whose keys are these fields.

    The items of other lists have no keys. They cannot be matched, so nothing is returned.
    """
    if not keys or not isinstance(old, list):
        return {}
    return {key_of(item, keys): item for item in old}


def key_of(item: Any, keys: Sequence[str]) -> ItemKey:
    """Returns what tells an item of a list of type map from others."""
    fields = item if isinstance(item, dict) else {}
    return tuple(repr(fields.get(name)) for name in keys)
