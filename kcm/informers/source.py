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

from kcm.api.scheme import Resource
from kcm.store import Changes, WatchEntry
from kcm.store.reader import FullList
from kcm.store.watch import ChangeType

__all__ = ["ChangeType", "Changes", "FullList", "ListerWatcher", "WatchEntry"]


class ListerWatcher(Protocol):
    """A store as informers use it. Thread-safe.

    Raises errors.StoreUnavailable when it cannot be reached, and errors.EpochChanged when a restart
    or failover of Redis has made earlier positions void.
    """

    def list_all(self, resource: Resource) -> FullList:
        """Returns all objects of the kind."""
        ...

    def read_changes(self, positions: Mapping[Resource, int], block_ms: int) -> Changes:
        """Returns the changes after these positions, after a wait of up to `block_ms`
        milliseconds.
        """
        ...

    def last_rvs(self, resources: Sequence[Resource]) -> Mapping[Resource, int]:
        """Returns the resourceVersion of the last write to each kind, 0 for none."""
        ...
