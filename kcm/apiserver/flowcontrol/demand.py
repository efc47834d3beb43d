"""How many seats a priority level could use, over some seconds.

Source: staging/src/k8s.io/apiserver/pkg/util/flowcontrol/fairqueuing/integrator.go, and
seatDemandStats in apf_controller.go, Kubernetes 1.36.
"""

from __future__ import annotations

import math

_KEPT = 0.977  # of the smoothed demand in each period; it halves in 5 minutes


class Demand:
    """Integrates a number of seats over time. `high` is the highest in the last period,
    `smoothed` follows it down slowly and up at once.
    """

    def __init__(self, now: float) -> None:
        self._seats = 0
        self._since = self._began = now
        self._sum = self._squares = 0.0
        self._highest = 0
        self.average = self.deviation = self.smoothed = 0.0
        self.high = 0

    def change(self, by: int, now: float) -> None:
        """Adds to the seats that could be used from now on."""
        self._advance(now)
        self._seats += by
        self._highest = max(self._highest, self._seats)

    def end_period(self, now: float) -> None:
        """Computes the figures of the period that ends now, and begins another one."""
        self._advance(now)
        self.high = self._highest
        if (seconds := now - self._began) > 0:
            self.average = self._sum / seconds
            variance = self._squares / seconds - self.average**2
            self.deviation = math.sqrt(max(0.0, variance))
            envelope = self.average + self.deviation
            self.smoothed = max(envelope, _KEPT * self.smoothed + (1 - _KEPT) * envelope)
        self._began, self._sum, self._squares = now, 0.0, 0.0
        self._highest = self._seats

    def _advance(self, now: float) -> None:
        seconds = now - self._since
        self._sum += self._seats * seconds
        self._squares += self._seats * self._seats * seconds
        self._since = now
