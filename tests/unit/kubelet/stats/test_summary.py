"""The body of /stats/summary."""

from __future__ import annotations

from kcm.kubelet.stats.summary import build_summary
from tests.unit.kubelet.stats.samples import SUMMARY


def test_the_summary_has_node_pods_and_containers() -> None:
    page = build_summary("n1", SUMMARY)
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
