"""The interface of a store for informers: full lists, changes of many kinds in one read, last
versions.

Guarantees of a source: the entries of one kind are returned in the order of their resourceVersions.
The objects of a list are at least as new as the list's resourceVersion (newer ones are returned
again as entries). If a reader may have missed entries, the kind is reported as `gone`. Not
guaranteed: any order between kinds, or that a position is that of an entry.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from kcm.api.scheme import Resource, Scheme
from kcm.store import Changes, WatchEntry
from kcm.store.reader import FullList
from kcm.store.watch import ChangeType

__all__ = ["ChangeSource", "ChangeType", "Changes", "FullList", "ListerWatcher", "WatchEntry"]


class ChangeSource(Protocol):
    """A store, or the watches of another API server, as a follower reads it.

    Raises errors.StoreUnavailable when it cannot be reached, and errors.EpochChanged when a restart
    or failover of Redis has made earlier positions void.
    """

    def read_changes(self, positions: Mapping[Resource, int], block_ms: int) -> Changes:
        """Returns the changes after these positions, after a wait of up to `block_ms`
        milliseconds.
        """
        ...


class ListerWatcher(ChangeSource, Protocol):
    """A store as informers use it. Thread-safe. Raises what a ChangeSource raises."""

    def list_all(self, resource: Resource) -> FullList:
        """Returns all objects of the kind."""
        ...

    def last_rvs(self, resources: Sequence[Resource]) -> Mapping[Resource, int]:
        """Returns the resourceVersion of the last write to each kind, 0 for none."""
        ...


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
    """A source that asks for changes only if there can be any, for a process in which one thread
    reads very often. Not thread-safe; it has the other guarantees of the source that it wraps.

    A read of the changes of all kinds names every kind; the store's counter says in one number
    whether anything was written since the last read. Most kinds have no objects when a control
    plane starts, and one look finds them.
    """

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
