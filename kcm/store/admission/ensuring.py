"""Creates the objects that every cluster has."""

from __future__ import annotations

from contextlib import suppress
from typing import Protocol

from kcm import errors
from kcm.api import scheme
from kcm.api.scheme import Resource
from kcm.apimachinery.meta_v1 import KubeObject


class Creator(Protocol):
    """The methods of a store that are needed to create an object that may exist; see `Store`."""

    def get(self, resource: Resource, key: str) -> KubeObject: ...

    def create(self, obj: KubeObject) -> KubeObject: ...

    def purge(self, resource: Resource, key: str) -> KubeObject: ...


def ensure_object(store: Creator, obj: KubeObject) -> None:
    """Creates an object unless it exists. An existing one that cannot be read is replaced.

    Raises: as `Store.create`, except AlreadyExists.
    """
    resource = scheme.resource_of(obj)
    try:
        store.get(resource, obj.key)
    except errors.Damaged:
        store.purge(resource, obj.key)
    except errors.NotFound:
        pass
    else:
        return
    with suppress(errors.AlreadyExists):
        store.create(obj)
