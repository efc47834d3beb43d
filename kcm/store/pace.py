"""The pace of a reader of the watch: at once when little happens, many changes at a time when much
does.
"""

from __future__ import annotations

from kcm.clock import Clock


class ReadPace:
    """Tells a reader how long to wait after a read that brought changes. Times are in seconds.

    The first `burst` reads in a row are `shortest` apart, further ones `interval`: a read costs as
    much as some changes do. Reads that stay out are made up for, one for each `interval`.
    """

    def __init__(self, clock: Clock, *, shortest: float, interval: float, burst: int) -> None:
        self._clock = clock
        self._shortest = shortest
        self._interval = interval
        self._burst = burst
        self._left = float(burst)
        self._counted_at = clock.monotonic()

    def count_read(self) -> float:
        """Counts a read, and returns how long to wait after it."""
        now = self._clock.monotonic()
        gained = (now - self._counted_at) / self._interval
        self._left = max(0.0, min(self._burst, self._left + gained) - 1)
        self._counted_at = now
        return self._shortest if self._left >= 1 else self._interval
