"""The metrics of admission webhooks, under kube-apiserver's names.

Source: staging/src/k8s.io/apiserver/pkg/admission/metrics/metrics.go, Kubernetes 1.33.
"""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Iterator, Sequence
from threading import Lock

from prometheus_client import CollectorRegistry, Counter, Histogram
from prometheus_client.core import Metric, UntypedMetricFamily

ADMIT, VALIDATING = "admit", "validating"
CALLING_ERROR, INTERNAL_ERROR, NO_ERROR = (
    "calling_webhook_error", "apiserver_internal_error", "no_error",
)  # fmt: skip
_PREFIX = "apiserver_admission"
_BUCKETS = (0.005, 0.025, 0.1, 0.5, 1.0, 2.5, 10, 25)
_CONDITION_BUCKETS = (0.001, 0.005, 0.01, 0.025, 0.1, 0.2, 0.25)
_MOST_CODE = 600
_CONDITION = ("name", "kind", "type", "operation")


class WebhookMetrics:
    """Counts the calls of webhooks, how long they took, and what followed."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._seconds = Histogram(
            f"{_PREFIX}_webhook_admission_duration_seconds",
            "Admission webhook latency histogram in seconds, identified by name and broken out for "
            "each operation and API resource and type (validate or admit).",
            ("name", "type", "operation", "rejected"),
            buckets=_BUCKETS,
            registry=registry,
        )
        self._requests = Counter(
            f"{_PREFIX}_webhook_request",
            "Admission webhook request total, identified by name and broken out for each admission "
            "type (validating or admit) and operation, with the HTTP status code.",
            ("name", "type", "operation", "code", "rejected"),
            registry=registry,
        )
        self._rejections = _Count(
            f"{_PREFIX}_webhook_rejection_count",
            "Admission webhook rejection count, identified by name and broken out for each "
            "admission type (validating or admit) and operation, with the type of the error.",
            ("name", "type", "operation", "error_type", "rejection_code"),
            registry,
        )
        self._opened = _Count(
            f"{_PREFIX}_webhook_fail_open_count",
            "Admission webhook fail open count, identified by name and broken out for each "
            "admission type (validating or admit).",
            ("name", "type"),
            registry,
        )
        self._excluded = Counter(
            f"{_PREFIX}_match_condition_exclusions",
            "Admission match condition evaluation exclusions count, identified by name of resource "
            "containing the match condition and broken out for each kind containing "
            "matchConditions (webhook or policy), operation and admission type.",
            _CONDITION,
            registry=registry,
        )
        self._condition_errors = Counter(
            f"{_PREFIX}_match_condition_evaluation_errors",
            "Admission match condition evaluation errors count, identified by name of resource "
            "containing the match condition and broken out for each kind containing "
            "matchConditions (webhook or policy), operation and admission type.",
            _CONDITION,
            registry=registry,
        )
        self._condition_seconds = Histogram(
            f"{_PREFIX}_match_condition_evaluation_seconds",
            "Admission match condition evaluation time in seconds, identified by name and broken "
            "out for each kind containing matchConditions (webhook or policy), operation and type.",
            _CONDITION,
            buckets=_CONDITION_BUCKETS,
            registry=registry,
        )

    def observe_call(
        self, name: str, type_: str, operation: str, code: int, seconds: float, *, rejected: bool
    ) -> None:
        """Counts a call with the HTTP status that it stands for."""
        shown, refused = str(min(code, _MOST_CODE)), str(rejected).lower()
        self._requests.labels(name, type_, operation, shown, refused).inc()
        self._seconds.labels(name, type_, operation, refused).observe(seconds)

    def count_rejection(
        self, name: str, type_: str, operation: str, error_type: str, code: int
    ) -> None:
        """Counts a request that was refused because of a webhook."""
        self._rejections.add((name, type_, operation, error_type, str(min(code, _MOST_CODE))))

    def count_opened(self, name: str, type_: str) -> None:
        """Counts a request that was admitted although the webhook could not be asked."""
        self._opened.add((name, type_))

    def observe_conditions(
        self, name: str, type_: str, operation: str, seconds: float, *, matched: bool, failed: bool
    ) -> None:
        """Counts an evaluation of match conditions."""
        labels = (name, "webhook", type_, operation)
        self._condition_seconds.labels(*labels).observe(seconds)
        if failed:
            self._condition_errors.labels(*labels).inc()
        elif not matched:
            self._excluded.labels(*labels).inc()


class _Count:
    """A counter whose name does not end in _total, which the library would append."""

    def __init__(
        self, name: str, text: str, labels: Sequence[str], registry: CollectorRegistry
    ) -> None:
        self._name, self._text, self._labels = name, text, labels
        self._lock = Lock()
        self._tally: Tally[tuple[str, ...]] = Tally()
        registry.register(self)

    def add(self, labels: tuple[str, ...]) -> None:
        with self._lock:
            self._tally[labels] += 1

    def collect(self) -> Iterator[Metric]:
        family = UntypedMetricFamily(self._name, self._text, labels=self._labels)
        with self._lock:
            counts = dict(self._tally)
        for labels, count in counts.items():
            family.add_metric(labels, count)
        yield family
