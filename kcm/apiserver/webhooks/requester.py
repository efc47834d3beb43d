"""Who asks webhooks, and how long the request may wait for them."""

from __future__ import annotations

from dataclasses import dataclass

from kcm.apiserver.auth.authorizer import Caller
from kcm.apiserver.http_errors import RequestTimeout
from kcm.apiserver.remarks import Remarks
from kcm.clock import Clock, RealClock

_CLOCK: Clock = RealClock()


class Deadline:
    """The moment at which the client gets a timeout."""

    def __init__(self, seconds: float, clock: Clock = _CLOCK) -> None:
        self._clock = clock
        self._at = clock.monotonic() + seconds

    def left(self) -> float:
        """Returns the seconds until then. Raises RequestTimeout if there are none."""
        left = self._at - self._clock.monotonic()
        if left <= 0:
            raise RequestTimeout("Timeout: request did not complete within requested timeout")
        return left

    def check(self) -> None:
        """Raises RequestTimeout if the moment has passed."""
        self.left()


@dataclass(frozen=True)
class Requester:
    """The sender of a request, what is remarked about it, and the time it has."""

    caller: Caller
    remarks: Remarks
    deadline: Deadline
