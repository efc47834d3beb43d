"""`Scheme`: the kinds of one store."""

from __future__ import annotations

import threading
from collections.abc import Iterable

from kcm.api.scheme.builtin import BUILT_IN
from kcm.api.scheme.kinds import Kinds, list_aliases
from kcm.api.scheme.remains import Remains
from kcm.apimachinery.meta_v1 import Resource


class Scheme(Kinds):
    """The kinds of one store: the built-in ones, and the custom kinds of its definitions.

    Thread-safe, so custom kinds may be added and removed at any time.
    """

    def __init__(self) -> None:
        super().__init__(BUILT_IN.served())
        self._generation = 0
        self.lock = threading.RLock()  # held while custom kinds change
        self.remains = Remains()

    def generation(self) -> int:
        return self._generation

    def replace_versions(self, name: str, versions: Iterable[Resource] = ()) -> None:
        """Replaces all versions of a custom kind. The first new one is the storage version.

        Without versions, the name is removed. Raises ValueError, and changes nothing, if the name
        is that of a built-in kind, or if an apiVersion and kind belongs to another name.
        """
        with self.lock:
            old, new = self._versions.get(name, ()), tuple(versions)
            if BUILT_IN.versions(name):
                raise ValueError(f"{name} is a built-in kind")
            for resource in new:
                taken = self._by_gvk.get((resource.api_version, resource.kind))
                if taken is not None and taken.name != name:
                    raise ValueError(f"{resource.kind} is registered already, as {taken.name}")
            if new:
                self._versions[name] = ()  # keeps its place
            for resource in new:
                self._add(resource)
            for resource in old:
                self._remove(resource)
            if not new:
                self._versions.pop(name, None)
            self._index()
            self._generation += 1

    def _remove(self, resource: Resource) -> None:
        gvk = (resource.api_version, resource.kind)
        if self._by_gvk.get(gvk) is resource:
            del self._by_gvk[gvk]
        for alias in list_aliases(resource):
            rest = [other for other in self._by_alias[alias] if other is not resource]
            if rest:
                self._by_alias[alias] = rest
            else:
                del self._by_alias[alias]
