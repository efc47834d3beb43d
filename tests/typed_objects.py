"""Reads objects of a kind that a test names, with that kind's type."""

from __future__ import annotations

from typing import Any, TypeVar

from kcm.api import codec
from kcm.apimachinery.meta_v1 import KubeObject
from kcm.store import Store

T = TypeVar("T", bound=KubeObject)


def decode_as(kind: type[T], data: bytes | str | dict[str, Any]) -> T:
    """Returns the object in a JSON text or a manifest. It may leave out apiVersion and kind."""
    obj = codec.decode(data, kind.resource)
    assert isinstance(obj, kind), f"{obj} is no {kind.__name__}"
    return obj


def get_object(store: Store, kind: type[T], key: str) -> T:
    """Returns the stored object with this key. Raises NotFound where there is none."""
    obj = store.get(kind.resource, key)
    assert isinstance(obj, kind), f"{obj} is no {kind.__name__}"
    return obj


def list_objects(store: Store, kind: type[T]) -> list[T]:
    """Returns all stored objects of the kind, by key."""
    return [get_object(store, kind, obj.key) for obj in store.list(kind.resource).items]
