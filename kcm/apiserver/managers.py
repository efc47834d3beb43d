"""Who owns which fields of an object: metadata.managedFields.

Kept only on objects that somebody has applied on the server: until then an
object has no managers, and its first apply finds everything owned by
`before-first-apply`, which is upstream's rule for objects without managers.

Source: staging/src/k8s.io/apimachinery/pkg/util/managedfields, Kubernetes 1.33.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from kcm.api import codec
from kcm.api.meta_v1 import KubeObject
from kcm.api.scheme import Resource
from kcm.api.times import format_time
from kcm.apiserver.fieldsets import Path, Paths, from_v1, paths, to_v1, value_at

BEFORE = "before-first-apply"


@dataclass(frozen=True)
class Manager:
    """One entry of managedFields."""

    name: str
    operation: str  # Apply or Update
    api_version: str
    time: str
    owned: Paths
    subresource: str = ""

    def is_(self, name: str, operation: str, subresource: str) -> bool:
        return (self.name, self.operation, self.subresource) == (name, operation, subresource)


def read(entries: Sequence[Mapping[str, Any]] | None) -> list[Manager]:
    """The managers in an object's metadata."""
    return [
        Manager(
            str(entry.get("manager", "")),
            str(entry.get("operation", "")),
            str(entry.get("apiVersion", "")),
            str(entry.get("time", "")),
            from_v1(entry.get("fieldsV1")),
            str(entry.get("subresource", "")),
        )
        for entry in entries or ()
        if entry
    ]


def written(managers: Sequence[Manager]) -> list[dict[str, Any]]:
    """The managers as metadata has them; one that owns nothing is left out."""
    return [_entry(manager) for manager in managers if manager.owned]


def _entry(manager: Manager) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "manager": manager.name,
        "operation": manager.operation,
        "apiVersion": manager.api_version,
        "time": manager.time,
        "fieldsType": "FieldsV1",
        "fieldsV1": to_v1(manager.owned),
    }
    return entry | ({"subresource": manager.subresource} if manager.subresource else {})


def track(
    old: KubeObject, new: KubeObject, resource: Resource, who: Manager, now: datetime
) -> KubeObject:
    """`new` with the managers of `old` after `who` updated it: what changed is now theirs."""
    known = read(old.metadata.managed_fields)
    if not known:
        return new if new.metadata.managed_fields is None else _with(new, [])
    if new.metadata.managed_fields is not None and not read(new.metadata.managed_fields):
        return _with(new, [])  # a client's way to start afresh
    before, after = codec.to_dict(old), codec.to_dict(new)
    model, subresource = resource.model, who.subresource
    present = paths(after, model, subresource)
    changed = _changed(before, after, resource, present)
    managers = _after_update(known, present, changed, who, format_time(now))
    return _with(new, managers)


def _changed(before: Any, after: Any, resource: Resource, present: Paths) -> Paths:
    def differs(path: Path) -> bool:
        was, is_ = value_at(before, resource.model, path), value_at(after, resource.model, path)
        return was is None if path[-1].startswith("k:") else was != is_

    return frozenset(path for path in present if differs(path))


def _after_update(
    known: Sequence[Manager], present: Paths, changed: Paths, who: Manager, time: str
) -> list[Manager]:
    managers: list[Manager] = []
    mine = None
    for manager in known:
        owned = manager.owned
        if manager.subresource == who.subresource:
            owned &= present
        if manager.is_(who.name, "Update", who.subresource):
            mine = replace(manager, owned=owned)
            continue
        # Belonging to a list is shared; a value has the owner that set it last.
        lost = {path for path in changed if not path[-1].startswith("k:")}
        managers.append(replace(manager, owned=owned - lost))
    if changed:
        owned = (mine.owned if mine else frozenset()) | changed
        mine = replace(who, owned=owned, time=time)
    return [*managers, *([mine] if mine else [])]


def _with(obj: KubeObject, managers: Sequence[Manager]) -> KubeObject:
    return obj.with_metadata(managed_fields=written(managers) or None)
