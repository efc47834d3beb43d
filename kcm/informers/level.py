"""A source of changes that asks for them only if there can be any.

A read of the changes of all kinds names every kind; the store's counter says in one number whether
anything was written since the last read. It is for a process in which one thread reads very often.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from kcm.api.scheme import Resource
from kcm.informers.source import Changes, FullList, ListerWatcher


class CountingSource(ListerWatcher, Protocol):
    """A source with a counter that each write increases."""

    def resource_version(self) -> int:
        """Returns the counter."""
        ...


class LevelSource:
    """A source with the guarantees of the one that it wraps. Not thread-safe."""

    def __init__(self, source: CountingSource) -> None:
        self._source = source
        # By kind, the counter before a read that found nothing more.
        self._level: dict[Resource, int] = {}

    def list_all(self, resource: Resource) -> FullList:
        """Returns all objects of the kind."""
        self._level.pop(resource, None)
        return self._source.list_all(resource)

    def read_changes(self, positions: Mapping[Resource, int], block_ms: int) -> Changes:
        """Returns the changes after these positions, none if the counter has not moved."""
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
