"""Metrics of probes, under upstream's names.

Source: pkg/kubelet/prober/prober_manager.go, Kubernetes 1.33.
"""

from __future__ import annotations

from contextlib import suppress

from prometheus_client import CollectorRegistry, Counter, Histogram

from kcm.kubelet.prober.results import Result
from kcm.kubelet.prober.state import Subject

_OF = ("probe_type", "container", "pod", "namespace")


class ProbeMetrics:
    """Counts probes; thread-safe."""

    def __init__(self, registry: CollectorRegistry | None = None) -> None:
        registry = registry or CollectorRegistry()
        self._total = Counter(
            "prober_probe",
            "Probes of a container, by kind and result.",
            (*_OF, "pod_uid", "result"),
            registry=registry,
        )
        self._seconds = Histogram(
            "prober_probe_duration_seconds",
            "Seconds that probes took, failed ones excepted.",
            _OF,
            registry=registry,
        )

    def count(self, subject: Subject, result: Result, seconds: float) -> None:
        self._total.labels(*_of(subject), subject.pod.uid or "", result.value).inc()
        if result is not Result.FAILURE:
            self._seconds.labels(*_of(subject)).observe(seconds)

    def forget(self, subject: Subject) -> None:
        """Take the series of a worker that has ended away."""
        for result in Result:
            with suppress(KeyError):
                self._total.remove(*_of(subject), subject.pod.uid or "", result.value)
        with suppress(KeyError):
            self._seconds.remove(*_of(subject))


def _of(subject: Subject) -> tuple[str, str, str, str]:
    pod = subject.pod
    return (subject.kind.value, subject.container.name, pod.name or "", pod.namespace or "")
