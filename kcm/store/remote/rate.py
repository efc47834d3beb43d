"""Limits the requests of a client: a token bucket, as client-go's flow control.

Source: staging/src/k8s.io/client-go/util/flowcontrol/throttle.go, Kubernetes 1.36.
"""

from __future__ import annotations

import threading

from kcm.clock import Clock


class RequestRate:
    """At most `qps` requests a second, after a burst. Thread-safe. 0 for no limit."""

    def __init__(self, qps: float, burst: int, clock: Clock) -> None:
        self._qps = qps
        self._burst = max(burst, 1)
        self._clock = clock
        self._lock = threading.Lock()
        self._tokens = float(self._burst)
        self._at = clock.monotonic()

    def reserve(self) -> float:
        """Takes the token of a request, and returns the seconds to wait before it is sent."""
        if self._qps <= 0:
            return 0.0
        with self._lock:
            now = self._clock.monotonic()
            gained = (now - self._at) * self._qps
            self._tokens = min(self._tokens + gained, float(self._burst)) - 1
            self._at = now
            return max(0.0, -self._tokens / self._qps)
