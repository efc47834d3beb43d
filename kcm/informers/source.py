"""What an informer reads from: full lists, changes of many kinds in one read, last versions.

Guarantees of a source: the entries of one kind come in the order of their resourceVersions; the
objects of a list are at least as new as the list's resourceVersion (some may be newer, and then
come again as entries); what a reader may have missed is reported as `gone`, never skipped silently.
Not guaranteed: any order between kinds, or that a position has an entry.
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
    """The store, as informers see it. Safe to call from several threads.

    Raises errors.StoreUnavailable when it cannot be reached, and errors.EpochChanged when positions
    from before are void.
    """

    def list_all(self, resource: Resource) -> FullList:
        """Returns every object of the kind."""
        ...

    def read_changes(self, positions: Mapping[Resource, int], block_ms: int) -> Changes:
        """Returns the entries after these positions; waits up to `block_ms` for the first."""
        ...

    def last_rvs(self, resources: Sequence[Resource]) -> Mapping[Resource, int]:
        """Returns the resourceVersion of the last write to each kind (0 for none)."""
        ...
