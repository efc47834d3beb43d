"""The metrics of aggregation, under upstream's names.

Source: staging/src/k8s.io/kube-aggregator/pkg/controllers/status/metrics/metrics.go, Kubernetes
1.33.
"""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client import CollectorRegistry, Counter
from prometheus_client.core import GaugeMetricFamily, Metric

from kcm.api.apiregistration_v1 import APIService, is_true
from kcm.apiserver.aggregation.index import Caches

_MOST_NAMES = 1000  # APIServices that have labels of their own


class AggregationMetrics:
    """Shows which APIServices are unavailable, and counts how often they became so."""

    def __init__(self, caches: Caches, registry: CollectorRegistry) -> None:
        self._total = Counter(
            "aggregator_unavailable_apiservice",
            "APIServices that were marked as unavailable, by name and reason.",
            ("name", "reason"),
            registry=registry,
        )
        self._names: set[str] = set()
        registry.register(_Unavailable(caches))

    def count_unavailable(self, name: str, reason: str) -> None:
        """Counts an APIService that became unavailable."""
        if name in self._names or len(self._names) < _MOST_NAMES:
            self._names.add(name)
            self._total.labels(name, reason).inc()


class _Unavailable:
    """Collects the present state whenever metrics are requested."""

    def __init__(self, caches: Caches) -> None:
        self._source = caches.cache(APIService.resource)

    def collect(self) -> Iterator[Metric]:
        family = GaugeMetricFamily(
            "aggregator_unavailable_apiservice",
            "Whether an APIService is unavailable, by name.",
            labels=("name",),
        )
        for entry in self._source.entries()[:_MOST_NAMES]:
            family.add_metric([entry.obj.name], 0 if is_true(entry.obj) else 1)
        yield family
