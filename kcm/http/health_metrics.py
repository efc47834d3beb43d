"""The results of health checks as metrics, which upstream's components serve at /metrics/slis.

Source: staging/src/k8s.io/component-base/metrics/prometheus/slis, Kubernetes 1.36.
"""

from __future__ import annotations

from collections.abc import Mapping

from prometheus_client import CollectorRegistry, Counter, Gauge

PATH = "/metrics/slis"


class HealthMetrics:
    """Counts the results of checks in `registry`. Threads may share it."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._last = Gauge(
            "kubernetes_healthcheck",
            "This metric records the result of a single healthcheck.",
            ("name", "type"),
            registry=self.registry,
        )
        self._results = Counter(
            "kubernetes_healthchecks",
            "This metric records the results of all healthcheck.",
            ("name", "type", "status"),
            registry=self.registry,
        )

    def count(self, page: str, faults: Mapping[str, str | None]) -> None:
        """Counts the checks that a page, such as `livez`, has run: what is wrong by their names."""
        for name, fault in faults.items():
            self._last.labels(name, page).set(fault is None)
            self._results.labels(name, page, "success" if fault is None else "error").inc()
