"""The zones in the output of `kcm status`."""

from __future__ import annotations

from kcm.cli.overview import read_overview
from kcm.cli.status import lines
from tests.integration.nodes.conftest import MONITOR, Cluster, Hire


def test_zones_are_shown_once_there_are_nodes(cluster: Cluster, hire: Hire) -> None:
    cluster.io.set_time(cluster.moment())  # it goes by steps only, however long a pass takes
    assert not any("EVICTIONS" in line for line in lines(read_overview(cluster.io)))
    for number in range(3):
        cluster.node(f"a{number}", "a")
        cluster.node(f"b{number}", "b")
    worker = hire()
    assert worker.run(MONITOR, cluster.due)
    cluster.fall_silent(worker, "a0", "a1", "a2", "b2")
    shown = list(lines(read_overview(cluster.io)))[-3:]
    assert [line.split() for line in shown] == [
        ["ZONE", "STATE", "NODES", "NOT", "READY", "EVICTIONS", "TOKENS", "WAITING", "LONGEST"],
        ["a", "Normal", "3", "0", "0.1/s", "1.00", "0", "-"],
        ["b", "Normal", "3", "2", "0.1/s", shown[2].split()[5], "2", "0s"],
    ]
    overview = read_overview(cluster.io).to_dict()["evictions"][1]
    assert (overview["waiting"], overview["not_ready"]) == (["b0", "b1"], 2)
    assert overview["tokens"] < 0.1
