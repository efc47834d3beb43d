"""Reads from an informer's cache, by namespace, name, selector and index.

Guarantees: what is returned is the cached object itself, so reading costs
nothing, and mutating it is forbidden.

Does not guarantee: freshness (see freshness.FreshnessBarrier), or any order.

Source: client-go `tools/cache/listers.go` and generated listers, Kubernetes 1.33.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Generic, TypeVar

from kcm.api.scheme import Resource
from kcm.apimachinery.labels import Selector
from kcm.apimachinery.meta_v1 import KubeObject
from kcm.errors import NotFound
from kcm.informers.indexer import Indexer

T = TypeVar("T", bound=KubeObject)


class NamespaceLister(Generic[T]):
    """The objects of one namespace."""

    def __init__(self, indexer: Indexer[T], resource: Resource, namespace: str) -> None:
        self._indexer = indexer
        self._resource = resource
        self._namespace = namespace

    def list(self, selector: Selector | None = None) -> list[T]:
        """The namespace's objects whose labels match; all without a selector."""
        return _matching(self._indexer.list(self._namespace), selector)

    def get(self, name: str) -> T:
        """Raises errors.NotFound."""
        obj = self._indexer.get_by_key(f"{self._namespace}/{name}")
        if obj is None:
            raise NotFound.of(self._resource.name, name)
        return obj


class Lister(Generic[T]):
    """The cached objects of one kind."""

    def __init__(self, indexer: Indexer[T], resource: Resource) -> None:
        self._indexer = indexer
        self._resource = resource

    def namespace(self, namespace: str) -> NamespaceLister[T]:
        """The same for one namespace."""
        return NamespaceLister(self._indexer, self._resource, namespace)

    def get(self, key: str) -> T:
        """The object under `namespace/name` (or `name`). Raises errors.NotFound."""
        obj = self._indexer.get_by_key(key)
        if obj is None:
            raise NotFound.of(self._resource.name, key.rpartition("/")[2])
        return obj

    def by_index(self, name: str, value: str) -> list[T]:
        """The objects with this value in a named index. Raises KeyError for an unknown index."""
        return self._indexer.by_index(name, value)

    def list(self, selector: Selector | None = None) -> list[T]:
        """The objects whose labels match; all without a selector."""
        return _matching(self._indexer.list(), selector)


def _matching(objects: list[T], selector: Selector | None) -> list[T]:
    if selector is None or selector.empty:
        return objects
    matches: Iterable[T] = (obj for obj in objects if selector.matches(obj.metadata.labels))
    return list(matches)
