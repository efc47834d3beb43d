"""A plan executor over a real store, and another client that changes objects during its writes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import pytest

from kcm.apimachinery.meta_v1 import Kind, KubeObject
from kcm.reconcile.executor import PlanExecutor
from kcm.redisio import RedisIO
from kcm.store import Store, WriteItem, WriteResult
from kcm.store.admission import namespaces
from tests.typed_objects import get_object

T = TypeVar("T", bound=KubeObject)


class WatchedStore(Store):
    """A store that counts its calls, and calls `meanwhile` once before the next write."""

    def __init__(self, io: RedisIO) -> None:
        super().__init__(io)
        self.calls: list[int] = []  # items per call of `write`
        self.reads = 0
        self.meanwhile: Callable[[], object] | None = None

    def write(self, items: Sequence[WriteItem[Kind]], **options: Any) -> list[WriteResult[Kind]]:
        if items and self.meanwhile is not None:
            meddle, self.meanwhile = self.meanwhile, None
            meddle()
        if items:
            self.calls.append(len(items))
        return super().write(items, **options)

    def get_all(self, wanted: Any) -> Any:
        self.reads += bool(wanted)
        return super().get_all(wanted)


@pytest.fixture
def store(io: RedisIO) -> WatchedStore:
    namespaces.ensure(Store(io), "default")
    return WatchedStore(io)


@pytest.fixture
def executor(store: WatchedStore) -> PlanExecutor:
    return PlanExecutor(store)


@pytest.fixture
def others(io: RedisIO) -> Store:
    """Gives another client of the same store."""
    return Store(io)


def put(store: Store, obj: T) -> T:
    """Creates an object of a builder in the store, with the uid that it has."""
    fields: dict[str, Any] = {"resource_version": None}
    return store.create(obj.with_metadata(**fields))


def get_stored(store: Store, obj: T) -> T:
    """Returns the stored state of an object."""
    return get_object(store, type(obj), obj.key)


def exists(store: Store, obj: KubeObject) -> bool:
    return store.get_all([(obj.resource, obj.key)]) != [None]
