"""Exponential back-off with jitter that is reset after a time without failures.

Source: apimachinery `pkg/util/wait/backoff.go`, exponentialBackoffManagerImpl, Kubernetes 1.33.
"""

from __future__ import annotations

import random

from kcm.clock import Clock


class BackoffManager:
    """Computes waits that begin with `initial` seconds and double up to `maximum`.

    Each is lengthened by a random share of itself, at most `jitter`. After `reset_after` seconds
    without a call the next wait is `initial` again. Not thread-safe.
    """

    FACTOR = 2.0

    def __init__(
        self,
        clock: Clock,
        rng: random.Random,
        *,
        initial: float,
        maximum: float,
        reset_after: float,
        jitter: float,
    ) -> None:
        self._clock = clock
        self._rng = rng
        self._initial = initial
        self._maximum = maximum
        self._reset_after = reset_after
        self._jitter = jitter
        self._step = initial
        self._last: float | None = None

    def next(self) -> float:
        """Returns the seconds to wait before the next attempt."""
        if self._quiet():
            self._step = self._initial
        self._last = self._clock.monotonic()
        wait = self._step
        self._step = min(self._step * self.FACTOR, self._maximum)
        return wait * (1.0 + self._jitter * self._rng.random())

    def next_or_now(self) -> float:
        """Returns the same as `next`, but 0 for the first attempt after `reset_after` seconds or a
        reset.
        """
        if not self._quiet():
            return self.next()
        self._step = self._initial
        self._last = self._clock.monotonic()
        return 0.0

    def reset(self) -> None:
        """Makes the next wait `initial` again."""
        self._last = None

    def _quiet(self) -> bool:
        return self._last is None or self._clock.monotonic() - self._last >= self._reset_after
