"""Wakes a loop when objects in the watch caches have changed, and says which."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from kcm.apimachinery.meta_v1 import KubeObject
from kcm.apiserver.aggregation.index import Caches
from kcm.apiserver.cache.watch_cache import CacheWatcher


class CacheWakes:
    """Follows the changes of some kinds. `wake` is called when there are any."""

    def __init__(
        self, caches: Caches, models: Sequence[type[KubeObject]], wake: Callable[[], None]
    ) -> None:
        self._caches = caches
        self._resources = {model: model.resource for model in models}
        self._wake = wake
        self._watchers: dict[type[KubeObject], CacheWatcher] = {}

    def take(self) -> Mapping[type[KubeObject], set[str] | None]:
        """Returns the keys of the objects that have changed since the last call, by kind.

        None stands for all objects: changes may have been missed. It follows the kinds from the
        first call on.
        """
        changed: dict[type[KubeObject], set[str] | None] = {}
        for model, resource in self._resources.items():
            watcher = self._watchers.get(model)
            if watcher is None or watcher.ended:
                _, self._watchers[model] = self._caches.cache(resource).subscribe(
                    None, "", self._wake
                )
                changed[model] = None
                continue
            keys: set[str] = set()
            while watcher.pending:
                keys.add(watcher.pending.popleft().entry.key)
            changed[model] = keys
        return changed

    def stop(self) -> None:
        """Follows them no longer."""
        for model, watcher in self._watchers.items():
            self._caches.cache(self._resources[model]).unsubscribe(watcher)
        self._watchers.clear()
