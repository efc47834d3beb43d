"""Creates the objects that every cluster has."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Protocol, TypeVar, cast

from kcm import errors
from kcm.api.scheme import Resource
from kcm.apimachinery.meta_v1 import KubeObject
from kcm.store.writes.items import WriteItem, WriteResult

T = TypeVar("T", bound=KubeObject)


class Creator(Protocol):
    """The methods of a store that are needed to create an object that may exist; see `Store`."""

    def get(self, resource: Resource, key: str) -> KubeObject: ...

    def create(self, obj: KubeObject) -> KubeObject: ...

    def purge(self, resource: Resource, key: str) -> KubeObject: ...


class BatchCreator(Creator, Protocol):
    """The methods of a store that are needed to create many such objects at once."""

    def get_all(self, wanted: Sequence[tuple[Resource, str]]) -> Sequence[KubeObject | None]: ...

    def build_create(self, obj: KubeObject) -> WriteItem: ...

    def write(self, items: Sequence[WriteItem]) -> Sequence[WriteResult]: ...


def ensure_object(store: Creator, obj: KubeObject) -> None:
    """Creates an object unless it exists. An existing one that cannot be read is replaced.

    Raises: as `Store.create`, except AlreadyExists.
    """
    resource = obj.resource
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


def ensure_objects(store: BatchCreator, objects: Sequence[T]) -> list[tuple[T, T]]:
    """Creates those of many objects that do not exist, with one read and one write.

    Returns the others, each with what is stored in its place. Existing ones that cannot be read
    are replaced. Raises: as `Store.create`, except AlreadyExists.
    """
    stored = store.get_all([(obj.resource, obj.key) for obj in objects])
    missing = [obj for obj, old in zip(objects, stored, strict=True) if old is None]
    results = store.write([store.build_create(obj) for obj in missing]) if missing else ()
    for obj, result in zip(missing, results, strict=True):
        if not result.ok:  # created meanwhile, or it cannot be read
            ensure_object(store, obj)
    return [
        (obj, cast("T", old)) for obj, old in zip(objects, stored, strict=True) if old is not None
    ]
