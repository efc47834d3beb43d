"""The kubelet's own metrics, under upstream's names.

Source: pkg/kubelet/metrics/metrics.go, Kubernetes 1.33.
"""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Histogram

_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
_POWERS_OF_TWO = (1.0, 2.0, 4.0, 8.0, 16.0)


class KubeletMetrics:
    """Counts what the kubelet does and measures how long it takes. Thread-safe."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._pod_worker_duration = Histogram(
            "kubelet_pod_worker_duration_seconds",
            "Duration in seconds to sync a single pod. Broken down by operation type.",
            ("operation_type",),
            buckets=_SECONDS,
            registry=registry,
        )
        self._containers_per_pod = Histogram(
            "kubelet_containers_per_pod_count",
            "The number of containers per pod.",
            buckets=_POWERS_OF_TWO,
            registry=registry,
        )
        self._relist_duration = Histogram(
            "kubelet_pleg_relist_duration_seconds",
            "Duration in seconds for relisting pods in PLEG.",
            buckets=_SECONDS,
            registry=registry,
        )
        self._evictions = Counter(
            "kubelet_evictions",
            "Cumulative number of pod evictions by eviction signal",
            ("eviction_signal",),
            registry=registry,
        )

    def observe_pod_worker(self, operation: str, seconds: float) -> None:
        """Records how long the sync of one pod took."""
        self._pod_worker_duration.labels(operation).observe(seconds)

    def observe_containers(self, count: int) -> None:
        """Records how many containers a new pod has."""
        self._containers_per_pod.observe(count)

    def observe_relist(self, seconds: float) -> None:
        """Records how long PLEG took to list all pods."""
        self._relist_duration.observe(seconds)

    def count_eviction(self, signal: str) -> None:
        """Counts a pod that was evicted because of an eviction signal."""
        self._evictions.labels(signal).inc()
