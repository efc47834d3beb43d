"""Detects writes, so that plugins may use what they have read. Upstream's have informers."""

from __future__ import annotations

from kcm.apimachinery.meta_v1 import KubeObject
from kcm.clock import Clock
from kcm.store.reader import StoreReader

MEMORY_SECONDS = 1.0  # seconds between checks for writes


class WriteWatch:
    """Reports whether objects of a kind were written since the last check.

    It checks at most once a second, so writes by other processes may be seen that much later.
    """

    def __init__(self, reader: StoreReader, model: type[KubeObject], clock: Clock) -> None:
        self._reader = reader
        self._resource = model.resource
        self._clock = clock
        self._checked_at: float | None = None  # monotonic
        self.newest = -1  # resourceVersion of the last write, 0 for none, -1 before any check

    def has_changed(self) -> bool:
        """Reports whether the kind was written since the last call. Raises: StoreUnavailable."""
        now = self._clock.monotonic()
        if self._checked_at is not None and now - self._checked_at < MEMORY_SECONDS:
            return False
        before, self.newest = self.newest, self._reader.last_rvs([self._resource])[self._resource]
        self._checked_at = now
        return self.newest != before

    def expect_change(self) -> None:
        """Makes the next call check again, since this process writes an object of the kind."""
        self._checked_at = None
