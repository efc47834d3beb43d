"""Reads the watch logs of a control plane into its journal.

It is for what no store of this process has reported: writes of other processes, and those whose
reply was lost. Guarantees: after `read`, the journal has every write that was made before, unless
`gaps` names its kind.
"""

from __future__ import annotations

from kcm.api import scheme
from kcm.redisio import RedisIO
from kcm.settings import Settings
from kcm.store.watch import WatchReader
from kcm.testing.history.journal import Journal


class LogReader:
    """Reads what was added to the logs since the last time. For one thread at a time."""

    def __init__(self, settings: Settings, journal: Journal) -> None:
        self._io = RedisIO(settings, name="kcm/history")
        self._reader = WatchReader(self._io)
        self._journal = journal
        self._positions: dict[str, int] = {}  # by the resource's name
        self.gaps: set[str] = set()  # kinds whose logs were trimmed before they were read

    def read(self) -> None:
        """Reads all that was added. Raises StoreUnavailable."""
        while True:
            asked = {kind: self._positions.get(kind.name, 0) for kind in scheme.resources()}
            changes = self._reader.read_changes(asked, 0)
            self._journal.read(changes.entries)
            for kind in changes.gone:
                newest = changes.newest.get(kind, 0)
                if newest and not self._journal.has(newest):
                    self.gaps.add(kind.name)
                self._positions[kind.name] = newest
            moved = False
            for kind, position in changes.positions.items():
                if kind not in changes.gone and position != self._positions.get(kind.name, 0):
                    self._positions[kind.name], moved = position, True
            if not moved:
                return

    def close(self) -> None:
        """Closes the connection."""
        self._io.close()
