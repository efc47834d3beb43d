"""Watch caches over plain objects."""

from __future__ import annotations

from typing import cast

from kcm.api import codec
from kcm.api.scheme import BUILT_IN, Resource
from kcm.apimachinery.meta_v1 import Kind, KubeObject
from kcm.apiserver.cache.entries import Entry
from kcm.apiserver.cache.watch_cache import WatchCache


class FakeHub:
    """Watch caches that a test fills, in place of the cacher's."""

    scheme = BUILT_IN

    def __init__(self, *objects: KubeObject, filled: bool = True) -> None:
        self._caches = {resource: WatchCache(resource) for resource in BUILT_IN.resources()}
        self.waited: list[str] = []
        if filled:
            self.fill(*objects)

    def fill(self, *objects: KubeObject) -> None:
        """Replaces the cache's objects by these."""
        for resource, cache in self._caches.items():
            own = [obj for obj in objects if obj.resource is resource]
            cache.refill([Entry(resource, obj.key, codec.encode(obj), 1) for obj in own], 1)

    def cache(self, resource: Resource[Kind]) -> WatchCache[Kind]:
        return cast("WatchCache[Kind]", self._caches[resource])

    def wait_until_fresh(self, *resources: Resource) -> int:
        self.waited += [resource.name for resource in resources]
        return 1
