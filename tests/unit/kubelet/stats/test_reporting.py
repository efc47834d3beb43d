"""The usage report of a node."""

from __future__ import annotations

from dataclasses import replace

from kcm.kubelet.stats.reporting import build_node_report
from tests.unit.kubelet.stats.samples import AT, MAIN, POD, SIDE, SUMMARY


def test_usage_is_reported_once_there_are_rates() -> None:
    assert build_node_report("n1", replace(SUMMARY, cores=None)) is None
    report = build_node_report("n1", SUMMARY)
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
    report = build_node_report("n1", replace(SUMMARY, pods=(fresh,)))
    assert report is not None
    assert report.pods == {}
