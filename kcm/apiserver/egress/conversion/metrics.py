"""The metrics of conversion webhooks, under kube-apiserver's names.

Source: staging/src/k8s.io/apiextensions-apiserver/pkg/apiserver/conversion/metrics.go, Kubernetes
1.33.
"""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Histogram

# Why a request failed.
CALL = "conversion_webhook_call_failure"
MALFORMED = "conversion_webhook_malformed_response_failure"
PARTIAL = "conversion_webhook_partial_response_failure"
INVALID = "conversion_webhook_invalid_converted_object_failure"
_KIND_BUCKETS = tuple(0.001 * 2**n for n in range(15))
_BUCKETS = (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 30, 45, 60)


class ConversionMetrics:
    """Counts requests to conversion webhooks, and how long they took."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._by_kind = Histogram(
            "apiserver_crd_conversion_webhook_duration_seconds",
            "CRD webhook conversion duration in seconds",
            ("crd_name", "from_version", "to_version", "succeeded"),
            buckets=_KIND_BUCKETS,
            registry=registry,
        )
        self._requests = Counter(
            "apiserver_conversion_webhook_request",
            "Counter for conversion webhook requests with success/failure and failure error type",
            ("result", "failure_type"),
            registry=registry,
        )
        self._seconds = Histogram(
            "apiserver_conversion_webhook_duration_seconds",
            "Conversion webhook request latency",
            ("result", "failure_type"),
            buckets=_BUCKETS,
            registry=registry,
        )

    def observe(self, name: str, source: str, target: str, seconds: float, failure: str) -> None:
        """Counts a request about the kind `name` from one version to another.

        `failure` is "" for a success.
        """
        result = ("failure" if failure else "success", failure)
        self._requests.labels(*result).inc()
        self._seconds.labels(*result).observe(seconds)
        succeeded = "false" if failure else "true"
        self._by_kind.labels(name, source, target, succeeded).observe(seconds)
