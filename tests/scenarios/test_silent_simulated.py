"""One of five simulated nodes is stopped, as a user does it: `kcm up --demo`, `kcm nodes stop`."""

from __future__ import annotations

from datetime import datetime

import pytest

from kcm.testing.waiting import until
from tests.scenarios.system import System, system

__all__ = ["system"]

pytestmark = pytest.mark.scenario

POD = """\
apiVersion: v1
kind: Pod
metadata: {{name: {name}}}
spec:
  nodeName: node-1
  containers: [{{name: main, image: nginx}}]
  tolerations:
  - {{key: node.kubernetes.io/unreachable, operator: Exists, effect: NoExecute, \
tolerationSeconds: {seconds}}}
---
"""
SET = """\
apiVersion: apps/v1
kind: ReplicaSet
metadata: {name: web}
spec:
  replicas: 8
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers: [{name: main, image: nginx}]
      tolerations:
      - {key: node.kubernetes.io/unreachable, operator: Exists, effect: NoExecute, \
tolerationSeconds: 1}
"""


def ready(system: System, node: str) -> str:
    conditions = system.get("node", node)["status"]["conditions"]
    return str(next(c["status"] for c in conditions if c["type"] == "Ready"))


def taints(system: System) -> list[tuple[str, str]]:
    stored = system.get("node", "node-1")["spec"].get("taints", ())
    return [(taint["effect"], taint["key"].rpartition("/")[2]) for taint in stored]


def is_deleting(system: System, pod: str) -> bool:
    return "deletionTimestamp" in system.get("pod", pod)["metadata"]


def homes(system: System) -> dict[str, str]:
    """The node of every pod of the set that runs and stays."""
    pods = system.items("pods")
    return {
        pod["metadata"]["name"]: pod["spec"].get("nodeName", "")
        for pod in pods
        if pod["metadata"]["name"].startswith("web-")
        and pod["status"]["phase"] == "Running"
        and "deletionTimestamp" not in pod["metadata"]
    }


def have_moved(system: System) -> bool:
    nodes_by_pod = homes(system)
    return len(nodes_by_pod) == 8 and "node-1" not in nodes_by_pod.values()


@pytest.mark.long
def test_a_stopped_node_loses_its_pods_at_the_right_second_and_returns(system: System) -> None:
    flags = ("--node-monitor-period=1s", "--node-monitor-grace-period=5s")
    system.start("--nodes", "5", "--demo", "--", *flags)
    system.apply(SET)
    until(lambda: len(homes(system)) == 8, "pods that run")
    before = homes(system)
    assert "node-1" in before.values(), "the scheduler spreads them"
    system.apply(POD.format(name="short", seconds=3) + POD.format(name="long", seconds=3600))
    until(lambda: system.get("pod", "short")["status"]["phase"] == "Running", "pods that run")

    assert system.kcm("nodes", "stop", "node-1").returncode == 0
    until(lambda: ready(system, "node-1") == "Unknown", "the mark")
    until(
        lambda: taints(system) == [("NoSchedule", "unreachable"), ("NoExecute", "unreachable")],
        "the taints",
    )
    until(lambda: is_deleting(system, "short"), "the eviction")
    (since,) = [
        taint["timeAdded"]
        for taint in system.get("node", "node-1")["spec"]["taints"]
        if taint["effect"] == "NoExecute"
    ]
    gone = system.get("pod", "short")["metadata"]
    passed = datetime.fromisoformat(gone["deletionTimestamp"]) - datetime.fromisoformat(since)
    assert passed.total_seconds() - gone["deletionGracePeriodSeconds"] >= 3
    assert not is_deleting(system, "long")
    assert [ready(system, f"node-{number}") for number in range(2, 6)] == ["True"] * 4
    assert "FullDisruption" not in system.kcm("status").stdout
    until(lambda: have_moved(system), "eight pods on the other nodes")
    stayed = {name: home for name, home in before.items() if home != "node-1"}
    assert stayed.items() <= homes(system).items(), "no other pod was touched"

    assert system.kcm("nodes", "start", "node-1").returncode == 0
    until(lambda: ready(system, "node-1") == "True" and not taints(system), "the return")
    until(lambda: "short" not in system.pods(), "the end of the pod")
    assert not is_deleting(system, "long")
    output = system.kcm("events").stdout
    assert "Marking for deletion Pod default/short" in output
    assert "Cancelling deletion of Pod default/long" in output
