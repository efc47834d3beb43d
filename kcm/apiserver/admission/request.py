"""`AdmissionRequest`: the request for a write, as the plugins of the API server know it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from kcm.apiserver.auth.authorizer import NOBODY, Caller
from kcm.apiserver.http_errors import RequestTimeout
from kcm.apiserver.request import Remarks
from kcm.clock import Clock, RealClock
from kcm.store.admission.plugin import Write, WriteRequest

_TIMEOUT = 60.0  # seconds that a request may wait for webhooks, as upstream
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
class AdmissionRequest(WriteRequest):
    """The request for a write: who sends it, and what is in its path and its options.

    `name` is "" in creates. `remarks` gets what plugins tell the client and the audit log.
    """

    caller: Caller = NOBODY
    namespace: str = ""
    name: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)  # fields of the verb's options
    remarks: Remarks = field(default_factory=Remarks)

    @cached_property
    def deadline(self) -> Deadline:
        """The moment until which webhooks may take. It is set when the first one is called."""
        return Deadline(_TIMEOUT)


def request_of(write: Write) -> AdmissionRequest | None:
    """Returns the request for a write, None for a write of kcm's own."""
    request = write.request
    return request if isinstance(request, AdmissionRequest) else None
