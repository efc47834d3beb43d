"""The view of a pass of a periodic loop: caches, the time of Redis, and kinds that are listed for
it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from datetime import datetime
from typing import Any, Generic, TypeVar, cast

from kcm import errors
from kcm.api.scheme import Kinds, Resource
from kcm.apimachinery.labels import Selector
from kcm.apimachinery.meta_v1 import KubeObject
from kcm.informers.store import Tally
from kcm.reconcile.contract import Lister, Metrics, Tick, View
from kcm.reconcile.indexes import INDEXERS
from kcm.store.objects import ObjectStore

T = TypeVar("T", bound=KubeObject)


class ListedObjects(Generic[T]):
    """Implements the contract's lister with objects that were just read from the store."""

    def __init__(self, objects: Sequence[T], resource: Resource) -> None:
        self._objects = {obj.key: obj for obj in objects}
        self._resource = resource

    def find(self, key: str) -> T | None:
        return self._objects.get(key)

    def get(self, key: str) -> T:
        obj = self.find(key)
        if obj is None:
            raise errors.NotFound.of(self._resource.name, key)
        return obj

    def list(self, namespace: str | None = None, selector: Selector | None = None) -> Sequence[T]:
        return [
            obj
            for obj in self._objects.values()
            if (namespace is None or obj.namespace == namespace)
            and (selector is None or selector.matches(obj.metadata.labels))
        ]

    def by_index(self, name: str, value: str) -> Sequence[T]:
        return [obj for obj in self._objects.values() if value in INDEXERS[name](obj)]

    def tally(self, tally: Tally[Any], value: str) -> Mapping[Hashable, int]:
        return Counter(tally.state(obj) for obj in self.by_index(tally.index, value))


Listed = Mapping[str, Sequence[KubeObject]]  # by the resource's name


def list_for_tick(tick: Tick, store: ObjectStore) -> Listed:
    """Returns the objects of the kinds that a tick lists, by resource. Raises StoreUnavailable."""
    listed: dict[str, Sequence[KubeObject]] = {}
    for model, namespace in tick.lists:
        resource = model.resource
        listed[resource.name] = store.in_namespace(resource, namespace)
    return listed


class TickView:
    """A view, with the time of Redis, the epoch and the listed kinds of a pass."""

    def __init__(self, view: View, moment: float, epoch: str, listed: Listed) -> None:
        self._view = view
        self._listed = listed
        self._moment = moment
        self._epoch = epoch

    @property
    def now(self) -> datetime:
        return self._view.now

    @property
    def scheme(self) -> Kinds:
        return self._view.scheme

    @property
    def memory(self) -> Mapping[str, str]:
        return self._view.memory

    @property
    def metrics(self) -> Metrics:
        return self._view.metrics

    def position(self, model: type[T]) -> int:
        return self._view.position(model)

    @property
    def moment(self) -> float:
        return self._moment

    @property
    def epoch(self) -> str:
        return self._epoch

    def by_index(self, name: str, value: str) -> Sequence[KubeObject]:
        cached = self._view.by_index(name, value)
        found = [obj for obj in cached if obj.resource.name not in self._listed]
        for objects in self._listed.values():
            found += [obj for obj in objects if value in INDEXERS[name](obj)]
        return found

    def lister(self, model: type[T]) -> Lister[T]:
        resource = model.resource
        listed = self._listed.get(resource.name)
        if listed is None:
            return self._view.lister(model)
        return ListedObjects(cast("Sequence[T]", listed), resource)
