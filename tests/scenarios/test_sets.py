"""A StatefulSet keeps its order while a node is stopped; a DaemonSet follows the nodes."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest

from kcm.testing.waiting import until
from tests.scenarios.system import System, system

__all__ = ["system"]

pytestmark = pytest.mark.scenario

WORKLOADS = """\
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: web}
spec:
  serviceName: web
  replicas: 3
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: main, image: nginx}]}
  volumeClaimTemplates:
  - metadata: {name: data}
    spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
---
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: agent}
spec:
  selector: {matchLabels: {app: agent}}
  template:
    metadata: {labels: {app: agent}}
    spec: {containers: [{name: main, image: agent}]}
"""
NEW_NODE = """\
apiVersion: v1
kind: Node
metadata: {name: late, labels: {kubernetes.io/hostname: late}}
status:
  capacity: {cpu: "4", memory: 8Gi, pods: "110"}
  allocatable: {cpu: "4", memory: 8Gi, pods: "110"}
"""


def pods(system: System, app: str) -> dict[str, dict[str, Any]]:
    return {pod["metadata"]["name"]: pod for pod in system.items("pods", app=app)}


def status(system: System, kind: str, name: str) -> dict[str, Any]:
    status: dict[str, Any] = system.get(kind, name).get("status", {})
    return status


def is_seen(system: System, kind: str, name: str) -> bool:
    """Whether the controller has synced what the object's spec says now."""
    generation = system.get(kind, name)["metadata"]["generation"]
    return bool(status(system, kind, name).get("observedGeneration") == generation)


def readiness(system: System, node: str) -> str:
    """Returns the status of the node's condition Ready."""
    conditions = status(system, "node", node)["conditions"]
    return str(next(c["status"] for c in conditions if c["type"] == "Ready"))


def get_creation_time(pod: dict[str, Any]) -> datetime:
    return datetime.fromisoformat(pod["metadata"]["creationTimestamp"])


def nodes_of(system: System, app: str) -> list[str]:
    return sorted(pod["spec"].get("nodeName", "") for pod in pods(system, app).values())


@pytest.mark.long
def test_sets_keep_their_promises_while_nodes_come_and_go(system: System) -> None:
    system.start("--nodes", "3", "--demo", "--", "--node-monitor-period=1s")
    system.apply(WORKLOADS)
    until(lambda: status(system, "sts", "web").get("readyReplicas") == 3, "three pods")
    first = pods(system, "web")
    assert (
        get_creation_time(first["web-0"])
        <= get_creation_time(first["web-1"])
        <= get_creation_time(first["web-2"])
    )
    until(lambda: status(system, "ds", "agent").get("numberReady") == 3, "a pod on each node")
    assert nodes_of(system, "agent") == ["node-1", "node-2", "node-3"]

    order_waits_for_a_stopped_node(system, first["web-1"])
    assert len(system.items("pvc")) == 5

    system.apply(NEW_NODE)
    until(lambda: "late" in nodes_of(system, "agent"), "a pod for the new node")
    assert nodes_of(system, "agent") == ["late", "node-1", "node-2", "node-3"]


def order_waits_for_a_stopped_node(system: System, pod: dict[str, Any]) -> None:
    """A pod that its silent node cannot end is neither doubled nor overtaken."""
    node, name = pod["spec"]["nodeName"], pod["metadata"]["name"]
    assert system.kcm("nodes", "stop", node).returncode == 0
    assert system.kcm("delete", "pod", name, "--no-wait").returncode == 0
    system.apply(WORKLOADS.replace("replicas: 3", "replicas: 5"))
    until(lambda: is_seen(system, "sts", "web"), "a sync with five replicas")
    until(lambda: readiness(system, node) == "Unknown", "the mark of the silent node")
    remaining = pods(system, "web")
    assert set(remaining) == {"web-0", "web-1", "web-2"}
    assert remaining[name]["metadata"]["uid"] == pod["metadata"]["uid"]

    assert system.kcm("nodes", "start", node).returncode == 0
    until(lambda: status(system, "sts", "web").get("readyReplicas") == 5, "five pods")
    final = pods(system, "web")
    assert final[name]["metadata"]["uid"] != pod["metadata"]["uid"]
    assert (
        get_creation_time(final[name])
        <= get_creation_time(final["web-3"])
        <= get_creation_time(final["web-4"])
    )
