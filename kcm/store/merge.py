"""JSON merge patch (RFC 7396), and the three-way merge for apply.

Lists are replaced as a whole, as kubectl does for kinds without merge keys. Source of the three-way
merge: staging/src/k8s.io/apimachinery/pkg/util/jsonmergepatch, Kubernetes 1.33.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"

Json = Mapping[str, Any]


def merge_patch(target: Any, patch: Any) -> Any:
    """Returns `target` with `patch` applied. Neither argument is changed."""
    if not isinstance(patch, Mapping):
        return patch
    merged = dict(target) if isinstance(target, Mapping) else {}
    for name, value in patch.items():
        if value is None:
            merged.pop(name, None)
        else:
            merged[name] = merge_patch(merged.get(name), value)
    return merged


def three_way(original: Json, modified: Json, current: Json) -> dict[str, Any]:
    """Returns the merge patch that brings `current` to `modified`.

    It deletes the fields that `original` has and `modified` has not. Fields that neither has are
    not changed.
    """
    patch: dict[str, Any] = {
        name: None for name in original if name not in modified and name in current
    }
    for name, wanted in modified.items():
        present = current.get(name)
        if isinstance(wanted, Mapping) and isinstance(present, Mapping):
            before = original.get(name)
            nested = three_way(before if isinstance(before, Mapping) else {}, wanted, present)
            if nested:
                patch[name] = nested
        elif name not in current or wanted != present:
            patch[name] = wanted
    return patch
