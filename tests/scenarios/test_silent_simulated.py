"""One of five simulated nodes is stopped, as a user does it: `kcm up --demo`, `kcm nodes stop`."""

from __future__ import annotations

from datetime import datetime

import pytest

from tests.scenarios.plane import Plane, StartPlane, start_plane

__all__ = ["start_plane"]

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


def ready(plane: Plane, node: str) -> str:
    conditions = plane.get("node", node)["status"]["conditions"]
    return str(next(c["status"] for c in conditions if c["type"] == "Ready"))


def taints(plane: Plane) -> list[tuple[str, str]]:
    stored = plane.get("node", "node-1")["spec"].get("taints", ())
    return [(taint["effect"], taint["key"].rpartition("/")[2]) for taint in stored]


def is_deleting(plane: Plane, pod: str) -> bool:
    return "deletionTimestamp" in plane.get("pod", pod)["metadata"]


def homes(plane: Plane) -> dict[str, str]:
    """The node of every pod of the set that runs and stays."""
    pods = plane.items("pods")
    return {
        pod["metadata"]["name"]: pod["spec"].get("nodeName", "")
        for pod in pods
        if pod["metadata"]["name"].startswith("web-")
        and pod["status"]["phase"] == "Running"
        and "deletionTimestamp" not in pod["metadata"]
    }


def have_moved(plane: Plane) -> bool:
    nodes_by_pod = homes(plane)
    return len(nodes_by_pod) == 8 and "node-1" not in nodes_by_pod.values()


def test_a_stopped_node_loses_its_pods_at_the_right_second_and_returns(
    start_plane: StartPlane,
) -> None:
    plane = start_plane("--node-monitor-period=1s", "--node-monitor-grace-period=5s", nodes=5)
    plane.apply(SET)
    plane.until(lambda: len(homes(plane)) == 8, "pods that run")
    before = homes(plane)
    assert "node-1" in before.values(), "the scheduler spreads them"
    plane.apply(POD.format(name="short", seconds=3) + POD.format(name="long", seconds=3600))
    plane.until(lambda: plane.get("pod", "short")["status"]["phase"] == "Running", "pods that run")

    plane.plane.nodes["node-1"].stop()
    plane.until(lambda: ready(plane, "node-1") == "Unknown", "the mark")
    plane.until(
        lambda: taints(plane) == [("NoSchedule", "unreachable"), ("NoExecute", "unreachable")],
        "the taints",
    )
    plane.until(lambda: is_deleting(plane, "short"), "the eviction")
    (since,) = [
        taint["timeAdded"]
        for taint in plane.get("node", "node-1")["spec"]["taints"]
        if taint["effect"] == "NoExecute"
    ]
    gone = plane.get("pod", "short")["metadata"]
    passed = datetime.fromisoformat(gone["deletionTimestamp"]) - datetime.fromisoformat(since)
    assert passed.total_seconds() - gone["deletionGracePeriodSeconds"] >= 3
    assert not is_deleting(plane, "long")
    assert [ready(plane, f"node-{number}") for number in range(2, 6)] == ["True"] * 4
    assert "FullDisruption" not in plane.kcm("status").stdout
    plane.until(lambda: have_moved(plane), "eight pods on the other nodes")
    stayed = {name: home for name, home in before.items() if home != "node-1"}
    assert stayed.items() <= homes(plane).items(), "no other pod was touched"

    plane.plane.nodes["node-1"].start()
    plane.until(lambda: ready(plane, "node-1") == "True" and not taints(plane), "the return")
    plane.until(lambda: "short" not in plane.pods(), "the end of the pod")
    assert not is_deleting(plane, "long")
    output = plane.kcm("events").stdout
    assert "Marking for deletion Pod default/short" in output
    assert "Cancelling deletion of Pod default/long" in output
