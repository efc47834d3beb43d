"""Limits how often a watch is read or sent on: soon after a few changes, in batches after many."""

from __future__ import annotations

from kcm.clock import Clock


class ReadPace:
    """Computes how long a reader waits after a read that returned changes. Times are in seconds.

    The first `burst` reads in a row are `shortest` apart, further ones `interval`, since a read
    costs as much as several changes. For each `interval` without a read, one more read may follow
    after `shortest`.
    """

    def __init__(self, clock: Clock, *, shortest: float, interval: float, burst: int) -> None:
        self._clock = clock
        self._shortest = shortest
        self._interval = interval
        self._burst = burst
        self._left = float(burst)
        self._counted_at = clock.monotonic()

    def count_read(self) -> float:
        """Counts a read, and returns the seconds to wait before the next one."""
        now = self._clock.monotonic()
        gained = (now - self._counted_at) / self._interval
        self._left = max(0.0, min(self._burst, self._left + gained) - 1)
        self._counted_at = now
        return self._shortest if self._left >= 1 else self._interval
