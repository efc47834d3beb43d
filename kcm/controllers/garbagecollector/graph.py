"""Finds out which objects own which: upstream's dependency graph, read from the caches' indexes.

Source: pkg/controller/garbagecollector/{graph,graph_builder}.go, Kubernetes 1.33. Upstream keeps
the graph in memory, with virtual nodes for owners that it has not seen. Here an item of the work
queue names an owner whether or not it exists.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

from kcm import errors
from kcm.api.scheme import Resource
from kcm.apimachinery.meta_v1 import KubeObject, OwnerReference
from kcm.sdk import (
    BY_OWNER,
    BY_UID,
    FOREGROUND_FINALIZER,
    ORPHAN_FINALIZER,
    Absent,
    Guard,
    Lister,
    View,
)

# Upstream's ignored resources: neither owners nor dependents.
IGNORED = frozenset({"events", "events.events.k8s.io"})


@dataclass(frozen=True)
class Item:
    """One incarnation of an object that is an owner, was one, or is named by an owner reference."""

    name: str  # the resource's name, such as `replicasets.apps`; it may no longer be served
    key: str
    uid: str

    @classmethod
    def of(cls, obj: KubeObject) -> Item:
        return cls(obj.resource.name, obj.key, obj.uid)

    @classmethod
    def parse(cls, text: str) -> Item:
        """Returns the item of a key such as `replicasets.apps|default/web|<uid>`."""
        resource, _, rest = text.partition("|")
        key, _, uid = rest.rpartition("|")
        return cls(resource, key, uid)

    def __str__(self) -> str:
        return f"{self.name}|{self.key}|{self.uid}"

    def absent(self) -> Guard:
        """Returns the guard that this incarnation does not exist."""
        return Absent(self.name, self.key, self.uid)


class OwnerState(Enum):
    """The state of an owner reference's owner, which decides whether the reference keeps a
    dependent.
    """

    SOLID = "the owner exists"
    ABSENT = "the owner does not exist"
    WAITING = "the owner is being deleted and waits for its dependents"
    UNKNOWN = "the owner's kind is not known"
    OUT_OF_SCOPE = "the owner's kind is namespaced, the dependent is cluster-scoped"


class Graph:
    """The graph of owners and dependents, as the caches have it now."""

    def __init__(self, view: View, about: Item | None = None) -> None:
        """`about` is the item of the sync. References to it are found even if its kind is gone."""
        self._view = view
        self._about = about
        self._namespaces: dict[str, frozenset[str]] = {}

    def objects(self) -> Iterator[KubeObject]:
        """Yields every object of every kind."""
        for lister in self._listers():
            yield from lister.list()

    def find(self, item: Item) -> KubeObject | None:
        """Returns the object that an item names, None if it or this incarnation of it does not
        exist.
        """
        resource = self._find_resource(item)
        lister = self._lister(resource) if resource else None
        obj = lister.find(item.key) if lister else None
        return obj if obj is not None and obj.uid == item.uid else None

    def dependents(self, uid: str) -> list[KubeObject]:
        """Returns all objects that have an owner reference with this uid."""
        return list(self._find_all(BY_OWNER, uid))

    def owner_item(self, reference: OwnerReference, dependent: KubeObject) -> Item | None:
        """Returns the item that a reference names, None for a kind that is unknown or ignored."""
        try:
            resource = self._view.scheme.by_gvk(reference.api_version, reference.kind)
        except errors.UnknownKind:
            gone = self._about
            if gone is None or self._find_resource(gone) is not None:
                return None
            return gone if _names_gone(reference, dependent, gone) else None
        if resource.name in IGNORED or self._lister(resource) is None:
            return None
        in_namespace = resource.namespaced and dependent.namespace
        key = f"{dependent.namespace}/{reference.name}" if in_namespace else reference.name
        return Item(resource.name, key, reference.uid)

    def owner_state(self, reference: OwnerReference, dependent: KubeObject) -> OwnerState:
        """Returns the state of a reference's owner, which is looked up in the dependent's namespace
        only.
        """
        item = self.owner_item(reference, dependent)
        if item is None:
            return OwnerState.UNKNOWN
        resource = self._find_resource(item)
        if resource is not None and resource.namespaced and not dependent.namespace:
            return OwnerState.OUT_OF_SCOPE
        owner = self.find(item)
        if owner is None:
            return OwnerState.ABSENT
        return OwnerState.WAITING if deletes_dependents(owner) else OwnerState.SOLID

    def is_elsewhere(self, reference: OwnerReference, dependent: KubeObject) -> bool:
        """Reports whether the owner exists in a namespace other than the dependent's."""
        namespaces = self._namespaces.get(reference.uid)
        if namespaces is None:
            namespaces = frozenset(owner.namespace for owner in self.bearers(reference.uid))
            self._namespaces[reference.uid] = namespaces
        return bool(namespaces - {"", dependent.namespace})

    def bearers(self, uid: str) -> Iterator[KubeObject]:
        """Returns the objects with this uid. There is at most one, unless an old object was
        restored.
        """
        return self._find_all(BY_UID, uid)

    def _find_all(self, index: str, uid: str) -> Iterator[KubeObject]:
        """Yields the objects of all served kinds with this index value, of few or of none."""
        for obj in self._view.by_index(index, uid):
            name = obj.resource.name
            if name not in IGNORED and self._view.scheme.versions(name):
                yield obj

    def _find_resource(self, item: Item) -> Resource | None:
        """Returns the resource of an item, None if its kind is no longer served."""
        return next(iter(self._view.scheme.versions(item.name)), None)

    def _lister(self, resource: Resource) -> Lister[Any] | None:
        """Returns the cache of a kind, or None for a kind that was added after the view was
        built.
        """
        try:
            return self._view.lister(resource.model)
        except LookupError:
            return None

    def _listers(self) -> Iterator[Lister[Any]]:
        for resource in self._view.scheme.resources():
            if resource.name not in IGNORED:
                lister = self._lister(resource)
                if lister is not None:
                    yield lister


def _names_gone(reference: OwnerReference, dependent: KubeObject, gone: Item) -> bool:
    """Reports whether a reference to a kind that is not served names the item `gone`, whose kind is
    not served either.

    The uid is not enough: any client may write the uid of a living owner beside another name, or
    name an unserved version of a kind that is served.
    """
    if gone.uid != reference.uid:
        return False
    group = reference.api_version.rpartition("/")[0]
    in_group = gone.name.partition(".")[2] == group
    return in_group and gone.key in (f"{dependent.namespace}/{reference.name}", reference.name)


def references_of(obj: KubeObject) -> Sequence[OwnerReference]:
    return obj.metadata.owner_references or ()


def deletes_dependents(obj: KubeObject) -> bool:
    """Reports whether the object is being deleted in the foreground, that is after its
    dependents.
    """
    return obj.deleting and FOREGROUND_FINALIZER in (obj.metadata.finalizers or ())


def orphans_dependents(obj: KubeObject) -> bool:
    """Reports whether the object is being deleted and its dependents are to be orphaned."""
    return obj.deleting and ORPHAN_FINALIZER in (obj.metadata.finalizers or ())


def blocks(dependent: KubeObject, owner_uid: str) -> bool:
    """Reports whether an owner's deletion in the foreground waits for this dependent."""
    return any(
        ref.uid == owner_uid and ref.block_owner_deletion for ref in references_of(dependent)
    )
