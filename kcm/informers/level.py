"""A source of changes that asks for them only if there can be any.

A read of the changes of all kinds names every kind; the store's counter says in one number whether
anything was written since the last read. Most kinds have no objects when a control plane starts,
and one look finds them. It is for a process in which one thread reads very often.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from kcm.api.scheme import Resource, Scheme
from kcm.informers.source import Changes, FullList, ListerWatcher


class CountingSource(ListerWatcher, Protocol):
    """A source with a counter that each write increases."""

    @property
    def scheme(self) -> Scheme: ...

    def resource_version(self) -> int:
        """Returns the counter."""
        ...

    def count_objects(self, resources: Sequence[Resource]) -> Mapping[Resource, int]:
        """Returns how many objects each kind has."""
        ...


class LevelSource:
    """A source with the guarantees of the one that it wraps. Not thread-safe."""

    def __init__(self, source: CountingSource) -> None:
        self._source = source
        # By kind, the counter before a read that found nothing more.
        self._level: dict[Resource, int] = {}
        # Kinds without objects, each with the counter before the look that found that.
        self._empty: dict[Resource, int] = {}

    def list_all(self, resource: Resource) -> FullList:
        """Returns all objects of the kind.

        One look at all kinds serves the lists until the next read of changes, which returns what
        was written since.
        """
        self._level.pop(resource, None)
        if not self._empty:
            counter = self._source.resource_version()
            counts = self._source.count_objects(self._source.scheme.resources())
            self._empty = {kind: counter for kind, count in counts.items() if not count}
        counter_before = self._empty.pop(resource, None)
        if counter_before is None:
            return self._source.list_all(resource)
        return FullList((), counter_before)

    def read_changes(self, positions: Mapping[Resource, int], block_ms: int) -> Changes:
        """Returns the changes after these positions, none if the counter has not moved."""
        self._empty = {}
        counter = self._source.resource_version()
        if all(self._level.get(resource) == counter for resource in positions):
            return Changes(positions=dict(positions))
        changes = self._source.read_changes(positions, block_ms)
        if not changes.entries and not changes.gone:
            self._level.update(dict.fromkeys(positions, counter))
        return changes

    def last_rvs(self, resources: Sequence[Resource]) -> Mapping[Resource, int]:
        """Returns the resourceVersion of the last write to each kind, 0 for none."""
        return self._source.last_rvs(resources)
