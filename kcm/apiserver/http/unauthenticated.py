"""A limit on the connections of one address whose clients have not authenticated.

Such a connection is one in its TLS handshake or before it, or one that has had no request with
valid credentials. It costs memory until its time is over, so one address may have only so many.
"""

from __future__ import annotations

from collections import Counter

import structlog
from prometheus_client import CollectorRegistry, Gauge
from prometheus_client import Counter as CounterMetric

from kcm.apiserver.http.notices import Notices, Tell, tell_nobody

log = structlog.get_logger("kcm.apiserver")


class UnauthenticatedConnections:
    """Counts them. Only the event loop's thread may use it."""

    def __init__(self, most: int, registry: CollectorRegistry, tell: Tell = tell_nobody) -> None:
        """One address may have `most` of them; 0 means no limit. `tell` makes an Event."""
        self._most = most
        self._tell = tell
        self._by_address: Counter[str] = Counter()
        self._refusals = Notices()
        self._refused = CounterMetric(
            "kcm_apiserver_connections_refused",
            "Connections that were closed at once: their address had too many unauthenticated.",
            registry=registry,
        )
        self._broken = CounterMetric(
            "apiserver_tls_handshake_errors",
            "Connections that ended without a TLS handshake.",
            registry=registry,
        )
        Gauge(
            "kcm_apiserver_connections_unauthenticated",
            "Open connections without a request with valid credentials.",
            registry=registry,
        ).set_function(self._by_address.total)

    def admit(self, address: str) -> Newcomer | None:
        """Counts a new connection. Returns None if it has to be closed."""
        if 0 < self._most <= self._by_address[address]:
            self._refused.inc()
            if (refused := self._refusals.count(address)) is not None:
                log.warning(
                    "Connections are refused: their address has too many without authentication",
                    address=address,
                    limit=self._most,
                    refused=refused,
                )
                self._tell(
                    "TooManyConnections",
                    f"{address} has {self._most} connections without authentication, the most of "
                    "one address (--max-unauthenticated-connections-per-address): more are closed",
                )
            return None
        self._by_address[address] += 1
        return Newcomer(self, address)

    def count_failed_handshake(self) -> None:
        """Counts a connection that ended without a TLS handshake."""
        self._broken.inc()

    def _forget(self, address: str) -> None:
        self._by_address[address] -= 1
        if not self._by_address[address]:
            del self._by_address[address]


class Newcomer:
    """A connection that counts until it is let go: when it has authenticated, or is lost."""

    def __init__(self, connections: UnauthenticatedConnections, address: str) -> None:
        self._connections = connections
        self._address = address
        self._counts = True

    def let_go(self) -> None:
        """Counts the connection no longer. Further calls do nothing."""
        if self._counts:
            self._counts = False
            self._connections._forget(self._address)
