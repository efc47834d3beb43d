"""What a pass of a periodic loop sees besides the caches: Redis' time, and kinds read for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Generic, TypeVar, cast

from kcm import errors
from kcm.api import scheme
from kcm.apimachinery.labels import Selector
from kcm.apimachinery.meta_v1 import KubeObject
from kcm.reconcile.contract import Lister, Metrics, Tick, View
from kcm.reconcile.indexes import INDEXERS
from kcm.store.objects import ObjectStore

T = TypeVar("T", bound=KubeObject)


class ListedObjects(Generic[T]):
    """The contract's lister over objects that were read just now."""

    def __init__(self, objects: Sequence[T]) -> None:
        self._objects = {obj.key: obj for obj in objects}

    def find(self, key: str) -> T | None:
        return self._objects.get(key)

    def get(self, key: str) -> T:
        found = self.find(key)
        if found is None:
            raise errors.NotFound(key)
        return found

    def list(self, namespace: str | None = None, selector: Selector | None = None) -> Sequence[T]:
        return [
            obj
            for obj in self._objects.values()
            if (namespace is None or obj.namespace == namespace)
            and (selector is None or selector.matches(obj.metadata.labels))
        ]

    def by_index(self, name: str, value: str) -> Sequence[T]:
        return [obj for obj in self._objects.values() if value in INDEXERS[name](obj)]


Listed = Mapping[str, Sequence[KubeObject]]  # by the resource's name


def listed_for(tick: Tick, store: ObjectStore) -> Listed:
    """Read what a tick wants read. Raises: StoreUnavailable."""
    found: dict[str, Sequence[KubeObject]] = {}
    for model, namespace in tick.lists:
        resource = scheme.resource_of(model)
        found[resource.name] = store.in_namespace(resource, namespace)
    return found


class TickView:
    """A view with what only passes get."""

    def __init__(self, view: View, moment: float, epoch: str, listed: Listed) -> None:
        self._view = view
        self._listed = listed
        self._moment = moment
        self._epoch = epoch

    @property
    def now(self) -> datetime:
        return self._view.now

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

    def lister(self, model: type[T]) -> Lister[T]:
        listed = self._listed.get(scheme.resource_of(model).name)
        if listed is None:
            return self._view.lister(model)
        return ListedObjects(cast("Sequence[T]", listed))
