"""Counts of the results of health checks."""

from __future__ import annotations

from prometheus_client import generate_latest

from kcm.http.health_metrics import HealthMetrics


def test_the_last_result_and_all_results_are_counted() -> None:
    metrics = HealthMetrics()
    metrics.count("readyz", {"redis": "refused", "ping": None})
    metrics.count("readyz", {"redis": None, "ping": None})
    metrics.count("livez", {"ping": "stuck"})
    page = generate_latest(metrics.registry).decode()
    lines = [line for line in page.splitlines() if line[0] != "#"]
    assert [line for line in lines if "_created" not in line] == [
        'kubernetes_healthcheck{name="redis",type="readyz"} 1.0',
        'kubernetes_healthcheck{name="ping",type="readyz"} 1.0',
        'kubernetes_healthcheck{name="ping",type="livez"} 0.0',
        'kubernetes_healthchecks_total{name="redis",status="error",type="readyz"} 1.0',
        'kubernetes_healthchecks_total{name="ping",status="success",type="readyz"} 2.0',
        'kubernetes_healthchecks_total{name="redis",status="success",type="readyz"} 1.0',
        'kubernetes_healthchecks_total{name="ping",status="error",type="livez"} 1.0',
    ]
