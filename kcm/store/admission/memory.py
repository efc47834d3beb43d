"""Short memories of what admission looks up, as upstream's plugins have informers."""

from __future__ import annotations

from kcm.api import scheme
from kcm.apimachinery.meta_v1 import KubeObject
from kcm.store.reader import StoreReader

MEMORY_SECONDS = 1.0  # how long what was read is trusted without a look for writes


class WriteWatch:
    """Says whether objects of a kind were written since the last look.

    It looks at most once a second. Writes by other processes show that much later.
    """

    def __init__(self, reader: StoreReader, model: type[KubeObject]) -> None:
        self._reader = reader
        self._resource = scheme.resource_of(model)
        self._looked_at: float | None = None  # monotonic
        self.newest = -1  # resourceVersion of the kind's last write, 0 for none, -1 before a look

    def has_news(self, monotonic: float) -> bool:
        """Reports whether the kind was written since the last call. Raises: StoreUnavailable."""
        if self._looked_at is not None and monotonic - self._looked_at < MEMORY_SECONDS:
            return False
        before, self.newest = self.newest, self._reader.last_rvs([self._resource])[self._resource]
        self._looked_at = monotonic
        return self.newest != before

    def look_soon(self) -> None:
        """Makes the next call look again, for this process writes an object of the kind."""
        self._looked_at = None
