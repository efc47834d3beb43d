"""Metrics of a node's duties, under upstream's names.

Source: pkg/kubelet/metrics/metrics.go, Kubernetes 1.33.
"""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, ProcessCollector, generate_latest

from kcm.kubelet.prober.metrics import ProbeMetrics


class NodeMetrics:
    """Thread-safe."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry(auto_describe=False)
        ProcessCollector(registry=self._registry)
        self.probes = ProbeMetrics(self._registry)
        self._evictions = Counter(
            "kubelet_evictions",
            "Cumulative number of pod evictions by eviction signal",
            ("eviction_signal",),
            registry=self._registry,
        )

    def evicted(self, signal: str) -> None:
        """A pod was evicted because of a signal."""
        self._evictions.labels(signal).inc()

    def page(self) -> bytes:
        """All of it, in Prometheus' text format."""
        return generate_latest(self._registry)
