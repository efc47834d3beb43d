"""The metrics of probes, under upstream's names.

Source: pkg/kubelet/prober/prober_manager.go, Kubernetes 1.33.
"""

from __future__ import annotations

from contextlib import suppress

from prometheus_client import CollectorRegistry, Counter, Histogram

from kcm.kubelet.prober.state import ProbedContainer, ProbeVerdict

_LABELS = ("probe_type", "container", "pod", "namespace")


class ProbeMetrics:
    """Counts probes and measures how long they take. Thread-safe."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._total = Counter(
            "prober_probe",
            "Cumulative number of probes of a container, by kind and result.",
            (*_LABELS, "pod_uid", "result"),
            registry=registry,
        )
        self._duration = Histogram(
            "prober_probe_duration_seconds",
            "Duration in seconds of probes that did not fail.",
            _LABELS,
            registry=registry,
        )

    def observe(self, probed: ProbedContainer, result: ProbeVerdict, seconds: float) -> None:
        """Counts a probe, and records its seconds unless it failed."""
        labels = _label_values(probed)
        self._total.labels(*labels, probed.pod.uid or "", result.value).inc()
        if result is not ProbeVerdict.FAILURE:
            self._duration.labels(*labels).observe(seconds)

    def forget(self, probed: ProbedContainer) -> None:
        """Removes the series of a container that is no longer probed."""
        labels = _label_values(probed)
        for result in ProbeVerdict:
            with suppress(KeyError):
                self._total.remove(*labels, probed.pod.uid or "", result.value)
        with suppress(KeyError):
            self._duration.remove(*labels)


def _label_values(probed: ProbedContainer) -> tuple[str, str, str, str]:
    pod = probed.pod
    return (probed.kind.value, probed.container.name, pod.name or "", pod.namespace or "")
