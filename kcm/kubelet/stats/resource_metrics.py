"""The metrics of /metrics/resource: CPU and memory of the node, its pods and its containers.

Source: pkg/kubelet/metrics/collectors/resource_metrics.go, Kubernetes 1.33.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from kcm.kubelet.stats.provider import StatsSummary

_NANOSECONDS = 10**9
_POD_LABELS = ("namespace", "pod")
_CONTAINER_LABELS = ("container", *_POD_LABELS)


class ResourceMetrics(Collector):
    """Collects the metrics of /metrics/resource from a summary of the stats."""

    def __init__(self, summary: Callable[[], StatsSummary]) -> None:
        """`summary` is called for each page."""
        self._summary = summary
        self._registry = CollectorRegistry(auto_describe=False)
        self._registry.register(self)

    def page(self) -> bytes:
        """Returns all metrics in Prometheus' text format."""
        return generate_latest(self._registry)

    def collect(self) -> Iterator[Metric]:
        stats = self._summary()
        yield from _node_metrics(stats)
        yield from _container_metrics(stats)
        yield from _pod_metrics(stats)
        yield GaugeMetricFamily(
            "resource_scrape_error",
            "1 if there was an error while getting container metrics, 0 otherwise",
            value=0,
        )


def _node_metrics(stats: StatsSummary) -> Iterator[Metric]:
    timestamp = stats.machine.at.timestamp()
    cpu = CounterMetricFamily(
        "node_cpu_usage_seconds", "Cumulative cpu time consumed by the node in core-seconds"
    )
    cpu.add_metric((), stats.machine.cpu / _NANOSECONDS, timestamp=timestamp)
    yield cpu
    memory = GaugeMetricFamily(
        "node_memory_working_set_bytes", "Current working set of the node in bytes"
    )
    memory.add_metric((), stats.machine.working_set, timestamp=timestamp)
    yield memory


def _container_metrics(stats: StatsSummary) -> Iterator[Metric]:
    timestamp = stats.machine.at.timestamp()
    cpu = CounterMetricFamily(
        "container_cpu_usage_seconds",
        "Cumulative cpu time consumed by the container in core-seconds",
        labels=_CONTAINER_LABELS,
    )
    memory = GaugeMetricFamily(
        "container_memory_working_set_bytes",
        "Current working set of the container in bytes",
        labels=_CONTAINER_LABELS,
    )
    started = GaugeMetricFamily(
        "container_start_time_seconds",
        "Start time of the container since unix epoch in seconds",
        labels=_CONTAINER_LABELS,
    )
    for pod in stats.pods:
        for container in pod.containers:
            labels = (container.name, pod.namespace, pod.name)
            began = container.started_at.timestamp() if container.started_at else 0.0
            cpu.add_metric(labels, container.cpu / _NANOSECONDS, timestamp=timestamp)
            memory.add_metric(labels, container.memory, timestamp=timestamp)
            started.add_metric(labels, began, timestamp=timestamp)
    yield from (cpu, memory, started)


def _pod_metrics(stats: StatsSummary) -> Iterator[Metric]:
    timestamp = stats.machine.at.timestamp()
    cpu = CounterMetricFamily(
        "pod_cpu_usage_seconds",
        "Cumulative cpu time consumed by the pod in core-seconds",
        labels=_POD_LABELS,
    )
    memory = GaugeMetricFamily(
        "pod_memory_working_set_bytes",
        "Current working set of the pod in bytes",
        labels=_POD_LABELS,
    )
    for pod in stats.pods:
        if pod.containers:
            labels = (pod.namespace, pod.name)
            cpu.add_metric(labels, pod.cpu / _NANOSECONDS, timestamp=timestamp)
            memory.add_metric(labels, pod.memory, timestamp=timestamp)
    yield from (cpu, memory)
