"""The watch caches, for those who read them."""

from __future__ import annotations

from typing import Protocol

from kcm.api.scheme import Kinds, Resource
from kcm.apimachinery.meta_v1 import Kind
from kcm.apiserver.cache.watch_cache import WatchCache


class Caches(Protocol):
    """The watch caches, as `kcm.apiserver.cache.cacher.Cacher` has them."""

    @property
    def scheme(self) -> Kinds: ...

    def cache(self, resource: Resource[Kind]) -> WatchCache[Kind]: ...


class FreshCaches(Caches, Protocol):
    """Watch caches that can wait for the store."""

    def wait_until_fresh(self, *resources: Resource) -> int: ...
