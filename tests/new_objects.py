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
    """Namespaces that tests put objects into."""
    for name in names:
        store.create(Namespace(metadata=ObjectMeta(name=name)))


def unstored(obj: T, uid: str | None = None) -> T:
    """The object without what only the store gives; `uid` where the caller chose one."""
    return obj.with_metadata(resource_version=None, uid=uid, creation_timestamp=None)


def pod(name: str, *, uid: str | None = None, **overrides: Any) -> Pod:
    return unstored(builders.pod(name, **overrides), uid)


def replica_set(name: str, *, uid: str | None = None, **overrides: Any) -> ReplicaSet:
    return unstored(builders.replica_set(name, **overrides), uid)


def node(name: str, **overrides: Any) -> Node:
    return unstored(builders.node(name, **overrides))
