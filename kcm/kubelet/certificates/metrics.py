"""The metrics of the kubelet's certificates, under upstream's names.

Source: pkg/kubelet/certificate/kubelet.go, Kubernetes 1.33.
"""

from __future__ import annotations

import math
from datetime import datetime

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from kcm.clock import Clock

_MINUTE, _HOUR, _DAY = 60.0, 3600.0, 86400.0
_AGES = (
    _MINUTE, 10 * _MINUTE, _HOUR, 4 * _HOUR, _DAY, 7 * _DAY, 30 * _DAY, 90 * _DAY, 180 * _DAY,
    365 * _DAY, 4 * 365 * _DAY, 10 * 365 * _DAY,
)  # fmt: skip


class _Ttl:
    """The seconds until a certificate ends, computed when the metrics are read."""

    def __init__(self, gauge: Gauge, clock: Clock) -> None:
        self._clock = clock
        self._not_after: datetime | None = None
        gauge.set_function(self._left)

    def set_expiry(self, not_after: datetime | None) -> None:
        self._not_after = not_after

    def _left(self) -> float:
        if self._not_after is None:
            return math.inf
        return math.trunc((self._not_after - self._clock.now()).total_seconds())


class ClientMetrics(_Ttl):
    """Records about the client certificate."""

    def __init__(self, registry: CollectorRegistry, clock: Clock) -> None:
        gauge = Gauge(
            "kubelet_certificate_manager_client_ttl_seconds",
            "Gauge of the TTL (time-to-live) of the Kubelet's client certificate. The value is in "
            "seconds until certificate expiry (negative if already expired). If client "
            "certificate is invalid or unused, the value will be +INF.",
            registry=registry,
        )
        super().__init__(gauge, clock)
        self._errors = Counter(
            "kubelet_certificate_manager_client_expiration_renew_errors",
            "Counter of certificate renewal errors.",
            registry=registry,
        )

    def observe_rotation(self, age: float) -> None:
        """Upstream has no metric for the age of client certificates."""

    def count_error(self) -> None:
        self._errors.inc()


class ServerMetrics(_Ttl):
    """Records about the serving certificate."""

    def __init__(self, registry: CollectorRegistry, clock: Clock) -> None:
        gauge = Gauge(
            "kubelet_certificate_manager_server_ttl_seconds",
            "Gauge of the shortest TTL (time-to-live) of the Kubelet's serving certificate. The "
            "value is in seconds until certificate expiry (negative if already expired). If "
            "serving certificate is invalid or unused, the value will be +INF.",
            registry=registry,
        )
        super().__init__(gauge, clock)
        self._ages = Histogram(
            "kubelet_certificate_manager_server_rotation_seconds",
            "Histogram of the number of seconds the previous certificate lived before being "
            "rotated.",
            buckets=_AGES,
            registry=registry,
        )
        self._errors = Counter(
            "kubelet_server_expiration_renew_errors",
            "Counter of certificate renewal errors.",
            registry=registry,
        )

    def observe_rotation(self, age: float) -> None:
        self._ages.observe(age)

    def count_error(self) -> None:
        self._errors.inc()
