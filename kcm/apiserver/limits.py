"""How many requests may be worked on at a time, those that change things apart.

Source: staging/src/k8s.io/apiserver/pkg/server/filters/maxinflight.go, Kubernetes 1.33.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from kcm.apiserver.refusals import TooManyRequests

_READS = frozenset({"GET", "HEAD"})


@dataclass(frozen=True)
class Limits:
    """The flags of these names; 0: no limit."""

    max_requests_inflight: int = 400  # that read
    max_mutating_requests_inflight: int = 200
    request_timeout: float = 60.0  # seconds until a request that does not end is answered with 504


def kind_of(method: str) -> str:
    """`readOnly` or `mutating`."""
    return "readOnly" if method in _READS else "mutating"


class InFlight:
    """Counts requests; used from the event loop alone."""

    def __init__(self, limits: Limits) -> None:
        self._most = {
            "readOnly": limits.max_requests_inflight,
            "mutating": limits.max_mutating_requests_inflight,
        }
        self.now = dict.fromkeys(self._most, 0)

    @contextmanager
    def one(self, method: str) -> Iterator[None]:
        """One request. Raises TooManyRequests."""
        kind = kind_of(method)
        if 0 < self._most[kind] <= self.now[kind]:
            raise TooManyRequests
        self.now[kind] += 1
        try:
            yield
        finally:
            self.now[kind] -= 1
