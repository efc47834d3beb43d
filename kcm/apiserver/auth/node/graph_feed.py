"""Keeps the graph of nodes and their objects up to date with the watch caches.

It begins with the first request of a node, so that a cluster without such requests pays nothing.
From then on a change only notes the key of its object. The graph takes the noted objects in when
it is asked, or, if many are noted, in the thread of the watch caches. So a request never waits for
more than `MOST_NOTED` objects, except the first one.

Source: plugin/pkg/auth/authorizer/node/graph_populator.go, Kubernetes 1.36.
"""

from __future__ import annotations

import threading
from typing import Protocol

from kcm import errors
from kcm.api.core_v1 import PersistentVolume, Pod
from kcm.api.resource_v1 import ResourceSlice
from kcm.api.scheme import Resource
from kcm.api.storage_v1 import VolumeAttachment
from kcm.apimachinery.meta_v1 import KubeObject
from kcm.apiserver.auth.node.graph import Graph, Vertex
from kcm.apiserver.cache.watch_cache import CacheWatcher, WatchCache

MOST_NOTED = 256


class Caches(Protocol):
    """The watch caches, as `kcm.apiserver.cache.cacher.Cacher` has them."""

    def cache(self, resource: Resource) -> WatchCache: ...


class GraphFeed:
    """The graph, fed by the watch caches of the kinds that give a node rights. Thread-safe."""

    def __init__(self, caches: Caches) -> None:
        self._caches = caches
        self._lock = threading.Lock()
        self._following = threading.Lock()
        self._graph = Graph()
        self._feeds = [
            _Feed(self, model.resource)
            for model in (Pod, PersistentVolume, VolumeAttachment, ResourceSlice)
        ]

    def belongs(self, node: str, vertex: Vertex) -> bool:
        """Reports whether an object belongs to a node.

        Raises StoreUnavailable while the watch caches are not filled.
        """
        with self._following:
            for feed in self._feeds:
                feed.follow(self._caches.cache(feed.resource))
        with self._lock:
            for feed in self._feeds:
                self._take_in(feed)
            return self._graph.belongs(node, vertex)

    def take_in(self, feed: _Feed) -> None:
        """Takes the objects that a feed has noted into the graph."""
        with self._lock:
            self._take_in(feed)

    def _take_in(self, feed: _Feed) -> None:
        for key in feed.take_noted():
            self._set(feed, key)

    def _set(self, feed: _Feed, key: str) -> None:
        try:
            obj = feed.find(key)
        except errors.KcmError:
            obj = None  # an object that cannot be read gives no rights
        if feed.resource.model is Pod:
            self._graph.set_pod(key, obj if isinstance(obj, Pod) else None)
        elif feed.resource.model is PersistentVolume:
            self._graph.set_volume(key, obj if isinstance(obj, PersistentVolume) else None)
        else:
            node = obj.spec.node_name if isinstance(obj, VolumeAttachment | ResourceSlice) else ""
            self._graph.set_node_of(feed.resource.plural, key, node or "")


class _Feed:
    """The keys of one kind whose objects have changed."""

    def __init__(self, owner: GraphFeed, resource: Resource) -> None:
        self.resource = resource
        self._owner = owner
        self._cache: WatchCache | None = None
        self._watcher: CacheWatcher | None = None
        self._lock = threading.Lock()
        self._noted: set[str] = set()
        self._all = False  # whether every object has to be looked at again
        self._keys_in_graph: set[str] = set()  # the keys of the objects that the graph has

    def follow(self, cache: WatchCache) -> None:
        """Subscribes to the cache, unless that is done. Raises StoreUnavailable."""
        watcher = self._watcher
        if watcher is not None and not watcher.ended and self._cache is cache:
            return
        if cache.position < 0:
            raise errors.StoreUnavailable(f"the {self.resource.plural} are not loaded yet")
        self._cache = cache
        entries, self._watcher = cache.subscribe(None, "", self._note)
        with self._lock:
            self._noted |= {entry.key for entry in entries}
            self._all = True
        self._note()  # what came before the watcher was set

    def _note(self) -> None:
        """Notes the keys of pending changes. The watch cache calls it after each change."""
        watcher = self._watcher
        if watcher is None:
            return
        with self._lock:
            while watcher.pending:
                self._noted.add(watcher.pending.popleft().entry.key)
            full = len(self._noted) > MOST_NOTED and not self._all
        if full:
            self._owner.take_in(self)

    def take_noted(self) -> set[str]:
        """Returns the noted keys, and forgets them."""
        with self._lock:
            noted, self._noted = self._noted, set()
            whole, self._all = self._all, False
        return noted | self._keys_in_graph if whole else noted

    def find(self, key: str) -> KubeObject | None:
        """Returns the object of a key as it is now, None if it is gone."""
        entry = self._cache.get(key) if self._cache is not None else None
        if entry is None:
            self._keys_in_graph.discard(key)
            return None
        self._keys_in_graph.add(key)
        return entry.obj
