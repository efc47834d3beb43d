"""Managed fields: the record in metadata.managedFields of which manager owns which fields.

An object that is created over HTTP has managers from the start. An object without managers gets
them at its first server-side apply, when `before-first-apply` becomes the owner of all its fields.
This is upstream's rule, and it saves controllers' creates in batches this work.

Source: staging/src/k8s.io/apimachinery/pkg/util/managedfields, Kubernetes 1.33.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property
from typing import Any

from kcm.api import codec
from kcm.api.scheme import Resource
from kcm.apimachinery.meta_v1 import KubeObject, format_time
from kcm.store.managed_fields.comparison import Difference, compare
from kcm.store.managed_fields.fieldsets import Paths, encode_creation, encode_paths, parse_paths

BEFORE = "before-first-apply"
ANCIENT = "ancient-changes"
MAX_UPDATERS = 10  # the most managers with operation Update; older ones are merged, as upstream


@dataclass(frozen=True)
class FieldManager:
    """An owner of fields: a name, as in the `manager` of metadata.managedFields.

    `operation` is Update, or Apply if the object to write has computed managed fields already.
    Changes by a manager without a name are not recorded.
    """

    name: str
    operation: str = "Update"


@dataclass(frozen=True)
class ManagedFieldsEntry:
    """One entry of metadata.managedFields."""

    name: str
    operation: str  # Apply or Update
    api_version: str
    time: str
    paths: Paths | None  # the fields that it owns, None for those in `entry`
    subresource: str = ""
    # The entry in metadata as long as it is unchanged, so that it need not be encoded again.
    entry: Mapping[str, Any] | None = None

    @cached_property
    def owned(self) -> Paths:
        """The fields that it owns. They are parsed when they are first needed, which is rare."""
        return parse_paths(self._fields) if self.paths is None else self.paths

    @property
    def owns_anything(self) -> bool:
        """Whether it owns any field."""
        if self.paths is None:
            return any(step != "." for step in self._fields)
        return bool(self.paths)

    @property
    def _fields(self) -> Mapping[str, Any]:
        fields = self.entry.get("fieldsV1") if self.entry is not None else None
        return fields if isinstance(fields, Mapping) else {}

    def with_owned(self, owned: Paths) -> ManagedFieldsEntry:
        """Returns the entry with these fields, or itself if they are the same."""
        return self if owned == self.owned else replace(self, paths=owned, entry=None)

    def without(self, lost: Paths) -> ManagedFieldsEntry:
        """Returns the entry without these fields, or itself if it owns none of them."""
        if self.paths is None and self._fields.keys().isdisjoint({path[0] for path in lost}):
            return self
        return self.with_owned(self.owned - lost)

    @property
    def identity(self) -> tuple[str, str, str, str]:
        """The values that identify an entry. The version of an apply is not among them."""
        version = "" if self.operation == "Apply" else self.api_version
        return self.name, self.operation, self.subresource, version


def parse_managers(entries: Sequence[Mapping[str, Any]] | None) -> list[ManagedFieldsEntry]:
    """Returns the entries of an object's metadata.managedFields."""
    return [
        ManagedFieldsEntry(
            str(entry.get("manager", "")),
            str(entry.get("operation", "")),
            str(entry.get("apiVersion", "")),
            str(entry.get("time", "")),
            None,
            str(entry.get("subresource", "")),
            entry,
        )
        for entry in entries or ()
        if entry
    ]


def encode_managers(managers: Sequence[ManagedFieldsEntry]) -> list[dict[str, Any]]:
    """Returns the entries for metadata.managedFields in upstream's order: applies first, then by
    time.

    Entries without fields are left out.
    """
    owners = [manager for manager in managers if manager.owns_anything]
    owners.sort(key=lambda m: (m.operation != "Apply", m.operation != "Apply" and m.time, m.name))
    return [_entry(manager) for manager in owners]


def _entry(manager: ManagedFieldsEntry) -> dict[str, Any]:
    if manager.entry is not None:
        return dict(manager.entry)
    entry: dict[str, Any] = {
        "manager": manager.name,
        "operation": manager.operation,
        "apiVersion": manager.api_version,
        "time": manager.time,
        "fieldsType": "FieldsV1",
        "fieldsV1": encode_paths(manager.owned),
    }
    return entry | ({"subresource": manager.subresource} if manager.subresource else {})


def keep_managers(new: KubeObject, old: KubeObject, subresource: str) -> KubeObject:
    """Returns `new` with the managed fields of `old`, unless `new` has its own.

    Clients that do not know the field must not remove it. With `[{}]` a client resets it. In
    updates of a subresource, those of `new` are ignored.
    """
    given = new.metadata.managed_fields
    if given is old.metadata.managed_fields:
        return new
    if given and not subresource and (is_reset(given) or any(given)):
        return new
    return new.with_metadata(managed_fields=old.metadata.managed_fields)


def is_reset(entries: Sequence[Mapping[str, Any]] | None) -> bool:
    """Reports whether the managed fields are `[{}]`, with which a client resets them."""
    return entries is not None and len(entries) == 1 and not entries[0]


def own_new_object(
    new: KubeObject, resource: Resource, who: FieldManager, now: datetime
) -> KubeObject:
    """Returns a new object whose managed fields are all owned by `who`."""
    owned = encode_creation(codec.to_dict(new), resource.model)
    if not owned:
        return new.with_metadata(managed_fields=None)
    entry = {
        "manager": who.name,
        "operation": "Update",
        "apiVersion": resource.api_version,
        "time": format_time(now),
        "fieldsType": "FieldsV1",
        "fieldsV1": owned,
    }
    return new.with_metadata(managed_fields=[entry])


def own_changes(
    old: KubeObject,
    new: KubeObject,
    resource: Resource,
    who: FieldManager,
    now: datetime,
    *,
    subresource: str = "",
) -> KubeObject:
    """Returns `new` with the fields that `who` changed through a subresource owned by `who`.

    Returns `new` itself if it has no managed fields.
    """
    sent = parse_managers(new.metadata.managed_fields)
    if not sent:
        return _with(new, []) if new.metadata.managed_fields else new
    difference = _find_difference(old, new, resource)
    mine = ManagedFieldsEntry(
        who.name,
        "Update",
        resource.api_version,
        format_time(now),
        frozenset(path for path in difference.changed if _may_own(path, subresource)),
        subresource,
    )
    return _with(new, _limit_updaters(_after_update(sent, mine, difference)))


def _find_difference(old: KubeObject, new: KubeObject, resource: Resource) -> Difference:
    """Returns the difference between the objects. Parts that they share in memory are skipped.

    After an update of the status, only the status is compared.
    """
    parts = codec.list_unshared(old, new)
    before, after = codec.to_dict(old, parts), codec.to_dict(new, parts)
    for body in (before, after):
        body.get("metadata", {}).pop("managedFields", None)
    return compare(before, after, resource.model)


def _may_own(path: tuple[str, ...], subresource: str) -> bool:
    if subresource == "status":  # labels and annotations may come with it
        return path[0] in ("f:status", "f:metadata")
    return path[0] != "f:status"


def _after_update(
    entries: Sequence[ManagedFieldsEntry], mine: ManagedFieldsEntry, difference: Difference
) -> list[ManagedFieldsEntry]:
    managers: list[ManagedFieldsEntry] = []
    gone, lost = difference.gone, difference.changed | difference.gone
    for manager in entries:
        if manager.identity != mine.identity:
            managers.append(manager.without(lost))
            continue
        same = not mine.owned and not manager.owned & gone
        time = manager.time if same else mine.time
        mine = replace(mine, paths=(manager.owned - gone) | mine.owned, time=time)
    return [*managers, mine]


def _limit_updaters(managers: list[ManagedFieldsEntry]) -> list[ManagedFieldsEntry]:
    updaters = sorted((m for m in managers if m.operation == "Update"), key=lambda m: m.time)
    excess = len([m for m in updaters if m.owns_anything]) - MAX_UPDATERS
    if excess <= 0:
        return managers
    old = updaters[: excess + 1]
    by_version: dict[str, ManagedFieldsEntry] = {}
    for manager in old:
        before = by_version.get(manager.api_version)
        owned = manager.owned | (before.owned if before else frozenset())
        by_version[manager.api_version] = ManagedFieldsEntry(
            ANCIENT, "Update", manager.api_version, manager.time, owned
        )
    gone = {id(manager) for manager in old}
    return [*by_version.values(), *(m for m in managers if id(m) not in gone)]


def _with(obj: KubeObject, managers: Sequence[ManagedFieldsEntry]) -> KubeObject:
    return obj.with_metadata(managed_fields=encode_managers(managers) or None)
