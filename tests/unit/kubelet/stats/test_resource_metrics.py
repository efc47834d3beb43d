"""The page of /metrics/resource."""

from __future__ import annotations

from prometheus_client.parser import text_string_to_metric_families

from kcm.kubelet.stats.resource_metrics import ResourceMetrics
from tests.unit.kubelet.stats.samples import AT, SUMMARY


def test_metrics_are_upstreams_and_can_be_read() -> None:
    page = ResourceMetrics(lambda: SUMMARY).page().decode()
    samples = {
        (sample.name, *sorted(sample.labels.values())): sample.value
        for family in text_string_to_metric_families(page)
        for sample in family.samples
    }
    assert samples["node_cpu_usage_seconds_total",] == 7
    assert samples["node_memory_working_set_bytes",] == 600
    assert samples["container_cpu_usage_seconds_total", "default", "main", "web"] == 2
    assert samples["container_memory_working_set_bytes", "default", "side", "web"] == 1024
    assert samples["container_start_time_seconds", "default", "main", "web"] == AT.timestamp()
    assert samples["pod_cpu_usage_seconds_total", "default", "web"] == 3
    assert samples["pod_memory_working_set_bytes", "default", "web"] == 3072
    assert samples["resource_scrape_error",] == 0
