"""`Scheme`: the kinds of one store."""

from __future__ import annotations

import gc
import threading
import time
from collections.abc import Iterable, Mapping

from kcm.api.scheme.builtin import BUILT_IN
from kcm.api.scheme.kinds import Kinds, list_aliases
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

    def replace_all(self, resources: Iterable[Resource], undiscovered: Mapping[str, str]) -> None:
        """Makes these the kinds of the scheme, those that another API server serves.

        `undiscovered` says of groups and versions why their kinds could not be read. Lookups of
        other threads see the kinds of before or of now. Raises ValueError if two resources have the
        same group, version and kind.
        """
        fresh = Kinds(resources)
        with self.lock:
            self.undiscovered = undiscovered
            if fresh.all_versions() != self.all_versions():
                self._versions, self._by_gvk = fresh._versions, fresh._by_gvk
                self._by_alias = fresh._by_alias
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


# --- Frees the memory of the classes of custom kinds that were replaced or removed.


# Garbage is collected after so many bytes of definitions were removed; that frees some 40 MB.
_DISCARDED = 8_000_000
_SHARE = 4  # collections take at most 1/_SHARE of the process's CPU time


class Remains:
    """Counts what the classes of a scheme leave, and collects it when it is much.

    A class refers to itself, so only the garbage collector can free it and its schema. Full
    collections happen rarely by themselves (see kcm.interpreter).
    """

    def __init__(self, discarded: int = _DISCARDED) -> None:
        """`discarded` is the number of bytes of removed definitions after which it collects."""
        self._discarded = discarded
        self._bytes = 0
        self._not_before = 0.0  # seconds of CPU

    def add(self, size: int) -> None:
        """Counts the bytes of a removed definition, and collects garbage when there are many."""
        self._bytes += size
        began = time.process_time()
        if self._bytes < self._discarded or began < self._not_before:
            return
        self._bytes = 0
        gc.collect()
        ended = time.process_time()
        self._not_before = ended + _SHARE * (ended - began)
