"""Detects writes, so that admission may use what it has read; upstream's plugins have informers."""

from __future__ import annotations

from kcm.apimachinery.meta_v1 import KubeObject
from kcm.store.reader import StoreReader

MEMORY_SECONDS = 1.0  # seconds between checks for writes


class WriteWatch:
    """Reports whether objects of a kind were written since the last check.

    It checks at most once a second, so writes by other processes may be seen that much later.
    """

    def __init__(self, reader: StoreReader, model: type[KubeObject]) -> None:
        self._reader = reader
        self._resource = model.resource
        self._looked_at: float | None = None  # monotonic
        self.newest = -1  # resourceVersion of the last write, 0 for none, -1 before any check

    def has_news(self, monotonic: float) -> bool:
        """Reports whether the kind was written since the last call. Raises: StoreUnavailable."""
        if self._looked_at is not None and monotonic - self._looked_at < MEMORY_SECONDS:
            return False
        before, self.newest = self.newest, self._reader.last_rvs([self._resource])[self._resource]
        self._looked_at = monotonic
        return self.newest != before

    def look_soon(self) -> None:
        """Makes the next call check again, since this process writes an object of the kind."""
        self._looked_at = None
