"""A controller's view: listers over the process's shared informers.

Guarantees: a lister returns what the informer cached, without copying; asking
for a kind that the controller did not declare is an error, so that a missing
declaration fails its first test and not in production.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Generic, TypeVar, cast

from kcm import errors
from kcm.api import scheme
from kcm.api.labels import Selector
from kcm.api.meta_v1 import KubeObject
from kcm.informers.factory import SharedInformerFactory
from kcm.informers.shared_informer import SharedIndexInformer
from kcm.reconcile.contract import Controller, Lister
from kcm.reconcile.indexes import INDEXERS

T = TypeVar("T", bound=KubeObject)


class CacheLister(Generic[T]):
    """The contract's lister over one informer."""

    def __init__(self, informer: SharedIndexInformer[Any]) -> None:
        self._indexer = informer.get_indexer()
        self._resource = informer.resource

    def find(self, key: str) -> T | None:
        return cast(T | None, self._indexer.get_by_key(key))

    def get(self, key: str) -> T:
        found = self.find(key)
        if found is None:
            raise errors.NotFound.of(self._resource.name, key)
        return found

    def list(self, namespace: str | None = None, selector: Selector | None = None) -> Sequence[T]:
        if namespace is None:
            objects: Sequence[Any] = self._indexer.list()
        else:
            objects = self._indexer.by_index("namespace", namespace)
        if selector is not None:
            objects = [obj for obj in objects if selector.matches(obj.metadata.labels)]
        return objects

    def by_index(self, name: str, value: str) -> Sequence[T]:
        return cast("Sequence[T]", self._indexer.by_index(name, value))


def declared_models(controller: Controller) -> tuple[type[KubeObject], ...]:
    """Every kind whose cache the controller needs."""
    models: dict[type[KubeObject], None] = dict.fromkeys(controller.reads)
    for watch in controller.watches():
        if watch.model is not None:
            models[watch.model] = None
        else:
            models.update(dict.fromkeys(r.model for r in scheme.resources() if r.name != "events"))
    return tuple(models)


class Caches:
    """The informers that one process keeps for its controllers."""

    def __init__(self, factory: SharedInformerFactory) -> None:
        self.factory = factory
        self._informers: dict[type[KubeObject], SharedIndexInformer[Any]] = {}
        # By controller; worked out once, for a view is made at every event and every sync.
        self._declared: dict[str, dict[type[KubeObject], SharedIndexInformer[Any]]] = {}

    def ensure(self, controllers: list[Controller]) -> None:
        """Have an informer for every kind that the controllers declare."""
        full = {m for c in controllers if not c.metadata_only for m in declared_models(c)}
        every = {m for c in controllers for m in declared_models(c)}
        for model in every - self._informers.keys():
            resource = scheme.resource_of(model)
            informer: SharedIndexInformer[Any] = (
                self.factory.informer_for(resource)
                if model in full
                else self.factory.metadata_informer_for(resource)
            )
            informer.add_indexers(INDEXERS)
            self._informers[model] = informer
        for controller in controllers:
            models = declared_models(controller)
            self._declared[controller.name] = {model: self._informers[model] for model in models}

    def view(self, controller: Controller, now: datetime) -> CacheView:
        """What the controller may look at, at this time."""
        return CacheView(now, self._declared[controller.name])

    def informer(self, model: type[KubeObject]) -> SharedIndexInformer[Any]:
        """The informer of a kind that some controller declared."""
        return self._informers[model]


class CacheView:
    """A view over live caches."""

    def __init__(
        self, now: datetime, informers: dict[type[KubeObject], SharedIndexInformer[Any]]
    ) -> None:
        self._now = now
        self._informers = informers

    @property
    def now(self) -> datetime:
        return self._now

    def lister(self, model: type[T]) -> Lister[T]:
        try:
            return CacheLister(self._informers[model])
        except KeyError:
            raise LookupError(f"{model.__name__} is not among what this controller reads") from None
