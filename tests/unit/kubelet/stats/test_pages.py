"""Pages of figures, and what is reported of them."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

from prometheus_client.parser import text_string_to_metric_families

from kcm.kubelet.stats.machine import MachineUse
from kcm.kubelet.stats.pages import resource_page, summary_page
from kcm.kubelet.stats.provider import ContainerUse, Disk, PodUse, Summary
from kcm.kubelet.stats.reporting import report_of

AT = datetime(2026, 1, 1, tzinfo=UTC)
MACHINE = MachineUse(AT, 7 * 10**9, 1000, 400, 5000, 3000, 100, 60, 20, 1000, AT.timestamp())
MAIN = ContainerUse("main", "1", AT, 2 * 10**9, 0.25, 2048, 4096, 3, AT, 10)
SIDE = ContainerUse("side", "2", AT, 10**9, 0.5, 1024, 1024, 1, AT, 5)
POD = PodUse("uid-1", "web", "default", (MAIN, SIDE), Disk(100, 4, {"data": 100}))
FOUND = Summary(MACHINE, 1.5, (POD, PodUse("uid-2", "idle", "default")), 10.0)


def test_the_summary_has_node_pods_and_containers() -> None:
    page = summary_page("n1", FOUND)
    node, (web, idle) = page["node"], page["pods"]
    assert node["nodeName"] == "n1"
    assert (node["cpu"]["usageNanoCores"], node["cpu"]["usageCoreNanoSeconds"]) == (
        1_500_000_000, 7 * 10**9,
    )  # fmt: skip
    assert (node["memory"]["workingSetBytes"], node["memory"]["availableBytes"]) == (600, 400)
    assert (node["fs"]["usedBytes"], node["fs"]["inodesUsed"]) == (2000, 40)
    assert node["rlimit"] == {"time": "2026-01-01T00:00:00Z", "maxpid": 1000, "curproc": 20}
    assert web["podRef"] == {"name": "web", "namespace": "default", "uid": "uid-1"}
    assert web["cpu"]["usageNanoCores"] == 750_000_000
    assert web["memory"]["workingSetBytes"] == 3072
    assert web["ephemeral-storage"] == {
        "time": "2026-01-01T00:00:00Z", "usedBytes": 115, "inodesUsed": 4,
    }  # fmt: skip
    assert [one["name"] for one in web["containers"]] == ["main", "side"]
    assert idle["containers"] == []
    assert "usageNanoCores" not in idle["cpu"]


def test_metrics_are_upstreams_and_can_be_read() -> None:
    found = {
        (sample.name, *sorted(sample.labels.values())): sample.value
        for family in text_string_to_metric_families(resource_page(FOUND))
        for sample in family.samples
    }
    assert found["node_cpu_usage_seconds_total",] == 7
    assert found["node_memory_working_set_bytes",] == 600
    assert found["container_cpu_usage_seconds_total", "default", "main", "web"] == 2
    assert found["container_memory_working_set_bytes", "default", "side", "web"] == 1024
    assert found["container_start_time_seconds", "default", "main", "web"] == AT.timestamp()
    assert found["pod_cpu_usage_seconds_total", "default", "web"] == 3
    assert found["pod_memory_working_set_bytes", "default", "web"] == 3072
    assert found["resource_scrape_error",] == 0


def test_usage_is_reported_once_there_are_rates() -> None:
    assert report_of("n1", replace(FOUND, cores=None)) is None
    report = report_of("n1", FOUND)
    assert report is not None
    assert (report.node, report.window, report.moment) == ("n1", 10.0, AT.timestamp())
    assert {name: str(amount) for name, amount in report.usage.items()} == {
        "cpu": "1500m", "memory": "0",
    }  # fmt: skip
    assert list(report.pods) == ["default/web"]
    containers = report.pods["default/web"].containers
    assert {name: str(used["cpu"]) for name, used in containers.items()} == {
        "main": "250m", "side": "500m",
    }  # fmt: skip
    assert str(containers["main"]["memory"]) == "2Ki"


def test_a_pod_with_a_new_container_is_not_reported_as_idle() -> None:
    fresh = replace(POD, containers=(MAIN, replace(SIDE, cores=None)))
    report = report_of("n1", replace(FOUND, pods=(fresh,)))
    assert report is not None
    assert report.pods == {}
