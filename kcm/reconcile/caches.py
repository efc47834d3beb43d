"""The view that a controller gets: listers over the shared informers of the process.

A lister returns the cached objects without copying them. A controller that requests a kind that it
did not declare gets an error, so that a missing declaration fails its first test rather than in
production.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from datetime import datetime
from types import MappingProxyType
from typing import Any, Generic, TypeVar, cast

from kcm import errors
from kcm.api.scheme import Resource, Scheme
from kcm.apimachinery.labels import Selector
from kcm.apimachinery.meta_v1 import KubeObject
from kcm.informers.factory import SharedInformerFactory
from kcm.informers.shared_informer import SharedIndexInformer
from kcm.informers.store import Tally
from kcm.reconcile.contract import Controller, Lister, Metrics
from kcm.reconcile.indexes import INDEXERS

T = TypeVar("T", bound=KubeObject)
NOTHING: Mapping[str, str] = MappingProxyType({})


class CacheLister(Generic[T]):
    """Implements the contract's lister with one informer."""

    def __init__(self, informer: SharedIndexInformer[Any]) -> None:
        self._indexer = informer.get_indexer()
        self._resource = informer.resource

    def find(self, key: str) -> T | None:
        return cast(T | None, self._indexer.get_by_key(key))

    def get(self, key: str) -> T:
        obj = self.find(key)
        if obj is None:
            raise errors.NotFound.of(self._resource.name, key)
        return obj

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

    def tally(self, tally: Tally[Any], value: str) -> Mapping[Hashable, int]:
        return self._indexer.tally(tally, value)


def list_declared_models(controller: Controller, scheme: Scheme) -> tuple[type[KubeObject], ...]:
    """Returns the models of all kinds of a scheme whose caches the controller needs."""
    models: dict[type[KubeObject], None] = dict.fromkeys(controller.reads)
    if controller.reads_scales:
        models.update(dict.fromkeys(r.model for r in scheme.resources() if r.scale is not None))
    for watch in controller.watches():
        if watch.model is not None:
            models[watch.model] = None
        else:
            models.update(dict.fromkeys(r.model for r in list_every_kind(scheme)))
    return tuple(models)


def list_every_kind(scheme: Scheme) -> list[Resource]:
    """Returns the kinds of controllers that watch every kind. Events are left out, as upstream."""
    kinds = scheme.resources()
    return [r for r in kinds if r.plural != "events" or r.group not in ("", "events.k8s.io")]


def list_declared_resources(controller: Controller, scheme: Scheme) -> tuple[Resource, ...]:
    """Returns the resources of all kinds of a scheme whose caches the controller needs."""
    return tuple(model.resource for model in list_declared_models(controller, scheme))


def _read_in_full(controller: Controller, declared: Iterable[str]) -> set[str]:
    """Returns the names of the resources of which the controller needs more than metadata."""
    if not controller.metadata_only:
        return set(declared)
    return _list_named(controller)


def _list_named(controller: Controller) -> set[str]:
    """Returns the names of the resources that the controller names, not as one of every kind."""
    watched = [watch.model for watch in controller.watches() if watch.model is not None]
    return {model.resource.name for model in (*controller.reads, *watched)}


class Caches:
    """The informers that one process runs for its controllers.

    `refresh` loads the definitions of custom kinds into the scheme, for stores in which kinds are
    added and deleted. Controllers that watch every kind follow these changes. Over another API
    server, `discover` asks which kinds it serves, and a kind that it does not let kcm list is no
    cache of theirs.
    """

    def __init__(
        self,
        factory: SharedInformerFactory,
        metrics: Metrics,
        scheme: Scheme,
        refresh: Callable[[], None] | None = None,
        discover: Callable[[], None] | None = None,
    ) -> None:
        self.factory = factory
        self._metrics = metrics
        self._scheme = scheme
        self._refresh = refresh
        self._discover = discover or refresh
        self._lock = threading.Lock()
        self._refused: frozenset[str] = frozenset()
        self._controllers: list[Controller] = []
        self._generation = -1
        # Keyed by the name of the stored resource: the model of a custom kind changes with its
        # definition.
        self._informers: dict[str, SharedIndexInformer[Any]] = {}
        # Keyed by controller and computed once, since every watch event and every sync gets a view.
        self._declared: dict[str, dict[str, SharedIndexInformer[Any]]] = {}

    def ensure(self, controllers: list[Controller]) -> None:
        """Starts an informer for every kind that the controllers declare, and stops all others."""
        with self._lock:
            self._controllers = controllers
            self._ensure()

    def _ensure(self) -> None:
        self._generation = self._scheme.generation()
        full: set[str] = set()
        every: dict[str, Resource] = {}
        declared: dict[str, list[str]] = {}
        for controller in self._controllers:
            resources = list_declared_resources(controller, self._scheme)
            by_name = {resource.name: resource for resource in resources}
            named = _list_named(controller)
            declared[controller.name] = [n for n in by_name if n in named or n not in self._refused]
            every |= by_name
            full |= _read_in_full(controller, by_name)
        for name in every.keys() - self._informers.keys():
            self._informers[name] = self._informer(every[name], full=name in full)
        for name in self._informers.keys() - every.keys():
            self.factory.forget(self._informers.pop(name))
        for controller in self._controllers:
            for model, tally in controller.tallies:
                name = model.resource.name
                self._informers[name].get_indexer().add_tally(tally)
        for controller_name, names in declared.items():
            self._declared[controller_name] = {name: self._informers[name] for name in names}

    def _informer(self, resource: Resource, *, full: bool) -> SharedIndexInformer[Any]:
        informer: SharedIndexInformer[Any] = (
            self.factory.informer_for(resource)
            if full and not resource.model.metadata_only
            else self.factory.metadata_informer_for(resource)
        )
        informer.add_indexers(INDEXERS)
        return informer

    def follow(self) -> bool:
        """Starts the caches of new custom kinds and stops those of kinds that are gone.

        Reports whether there were any. Raises StoreUnavailable.
        """
        if self._refresh is not None:
            self._refresh()
        with self._lock:
            refused = self._list_refused()
            if self._generation == self._scheme.generation() and refused == self._refused:
                return False
            self._refused = refused
            self._ensure()
        self.factory.start()
        return True

    def _list_refused(self) -> frozenset[str]:
        """Returns the names of the kinds that another API server does not let kcm list."""
        if self._refresh is not None:  # kcm's own store lets it
            return frozenset()
        return frozenset(name for name, each in self._informers.items() if each.refusal)

    def view(
        self, controller: Controller, now: datetime, memory: Mapping[str, str] = NOTHING
    ) -> CacheView:
        """Returns the view of the controller at the time `now`."""
        informers = self._declared[controller.name]
        reached = self.factory.position_of
        return CacheView(now, informers, reached, self._metrics, memory, scheme=self._scheme)

    def present(self, controller: Controller) -> list[Resource]:
        """Returns the kinds whose caches a sync of the controller needs, including new custom
        kinds.

        Raises StoreUnavailable.
        """
        if controller.needs_kinds and self._discover is not None:
            self._discover()
        every = any(watch.model is None for watch in controller.watches())
        if every or controller.reads_scales:
            self.follow()
        return self.resources(controller)

    def resources(self, controller: Controller) -> list[Resource]:
        """Returns the kinds whose caches the controller uses."""
        return [informer.resource for informer in self._declared[controller.name].values()]

    def knows(self, name: str) -> bool:
        """Reports whether there is an informer for the resource of this name."""
        return name in self._informers

    def informer(self, kind: Resource | type[KubeObject]) -> SharedIndexInformer[Any]:
        """Returns the informer of a kind. Raises KeyError if no controller declares the kind."""
        resource = kind if isinstance(kind, Resource) else kind.resource
        return self._informers[resource.name]


class CacheView:
    """A view over the caches of the process."""

    def __init__(
        self,
        now: datetime,
        informers: dict[str, SharedIndexInformer[Any]],
        reached: Callable[[Resource], int],
        metrics: Metrics,
        memory: Mapping[str, str] = NOTHING,
        *,
        scheme: Scheme,
    ) -> None:
        self._now = now
        self._scheme = scheme
        self._informers = informers
        self._reached = reached
        self._metrics = metrics
        self._memory = memory

    @property
    def now(self) -> datetime:
        return self._now

    @property
    def scheme(self) -> Scheme:
        return self._scheme

    @property
    def memory(self) -> Mapping[str, str]:
        return self._memory

    @property
    def metrics(self) -> Metrics:
        return self._metrics

    def lister(self, model: type[T]) -> Lister[T]:
        return CacheLister(self._informer(model))

    def by_index(self, name: str, value: str) -> Sequence[KubeObject]:
        found: list[KubeObject] = []
        for informer in self._informers.values():
            found += informer.get_indexer().by_index(name, value)
        return found

    def position(self, model: type[T]) -> int:
        return self._reached(self._informer(model).resource)

    def _informer(self, model: type[T]) -> SharedIndexInformer[Any]:
        try:
            return self._informers[model.resource.name]
        except (KeyError, AttributeError):
            raise LookupError(
                f"{model.__name__} is not a kind that this controller reads"
            ) from None
