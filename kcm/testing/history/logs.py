"""Reads the watch logs of a control plane into its journal.

It is for what no store of this process has reported: writes of other processes, and those whose
reply was lost. Guarantees: after `read`, the journal has every write that was made before, unless
`gaps` names its kind.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kcm.api.scheme import Kinds, Resource
from kcm.informers.follower import Follower
from kcm.redisio import RedisIO
from kcm.settings import Settings
from kcm.store import Store, WatchEntry
from kcm.testing.history.journal import Journal


class LogReader:
    """Reads what was added to the logs since the last time. For one thread at a time."""

    def __init__(self, settings: Settings, journal: Journal, kinds: Kinds) -> None:
        self._io = RedisIO(settings, name="kcm/history")
        self._store = Store(self._io)
        self._journal = journal
        self._kinds = kinds
        self._follower = Follower(self._store, self)
        self._begun: set[Resource] = set()
        self.gaps: set[str] = set()  # kinds whose logs were trimmed before they were read

    def read(self) -> None:
        """Reads all that was added. Raises StoreUnavailable."""
        self._follower.follow(self._kinds.resources())
        before: Mapping[Resource, int] = {}
        while self._follower.is_listing or before != self._follower.positions:
            before = dict(self._follower.positions)
            self._follower.read(0.0)

    def list_kinds(self, kinds: Sequence[Resource]) -> Mapping[Resource, int]:
        """Returns the beginning of a log, or the newest write where its changes are gone."""
        newest = self._store.last_rvs(kinds)
        lost = self._begun.intersection(kinds)
        self.gaps |= {k.name for k in lost if newest[k] and not self._journal.has(newest[k])}
        self._begun.update(kinds)
        return {kind: newest[kind] if kind in lost else 0 for kind in kinds}

    def apply_changes(
        self, kind: Resource, changes: Sequence[WatchEntry], resource_version: int
    ) -> None:
        """Adds changes to the journal; see `ChangeTarget`."""
        self._journal.read(changes)

    def close(self) -> None:
        """Closes the connection."""
        self._io.close()
