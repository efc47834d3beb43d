"""The builders' objects as somebody would send them to be created."""

from __future__ import annotations

from typing import Any, TypeVar

from kcm.api.apps_v1 import ReplicaSet
from kcm.api.core_v1 import Namespace, Node, Pod
from kcm.apimachinery.meta_v1 import KubeObject, ObjectMeta
from kcm.store import Store
from kcm.testing import builders

T = TypeVar("T", bound=KubeObject)


def make_namespaces(store: Store, *names: str) -> None:
    """Creates namespaces that tests put objects into."""
    for name in names:
        store.create(Namespace(metadata=ObjectMeta(name=name)))


def strip_store_fields(obj: T, uid: str | None = None) -> T:
    """Returns the object without what only the store gives; `uid` is kept where one is given."""
    return obj.with_metadata(resource_version=None, uid=uid, creation_timestamp=None)


def pod(name: str, *, uid: str | None = None, **overrides: Any) -> Pod:
    """Returns a pod as a user would send it."""
    return strip_store_fields(builders.pod(name, **overrides), uid)


def replica_set(name: str, *, uid: str | None = None, **overrides: Any) -> ReplicaSet:
    """Returns a ReplicaSet as a user would send it."""
    return strip_store_fields(builders.replica_set(name, **overrides), uid)


def node(name: str, **overrides: Any) -> Node:
    """Returns a node as a user would send it."""
    return strip_store_fields(builders.node(name, **overrides))
