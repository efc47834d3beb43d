"""A StatefulSet keeps its order while a node is stopped; a DaemonSet follows the nodes."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest

from tests.scenarios.plane import Plane, StartPlane, start_plane

__all__ = ["start_plane"]

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


def pods(plane: Plane, app: str) -> dict[str, dict[str, Any]]:
    return {pod["metadata"]["name"]: pod for pod in plane.items("pods", app=app)}


def status(plane: Plane, kind: str, name: str) -> dict[str, Any]:
    status: dict[str, Any] = plane.get(kind, name).get("status", {})
    return status


def is_seen(plane: Plane, kind: str, name: str) -> bool:
    """Whether the controller has synced what the object's spec says now."""
    generation = plane.get(kind, name)["metadata"]["generation"]
    return bool(status(plane, kind, name).get("observedGeneration") == generation)


def readiness(plane: Plane, node: str) -> str:
    """Returns the status of the node's condition Ready."""
    conditions = status(plane, "node", node)["conditions"]
    return str(next(c["status"] for c in conditions if c["type"] == "Ready"))


def get_creation_time(pod: dict[str, Any]) -> datetime:
    return datetime.fromisoformat(pod["metadata"]["creationTimestamp"])


def nodes_of(plane: Plane, app: str) -> list[str]:
    return sorted(pod["spec"].get("nodeName", "") for pod in pods(plane, app).values())


def test_sets_keep_their_promises_while_nodes_come_and_go(start_plane: StartPlane) -> None:
    plane = start_plane("--node-monitor-period=1s")
    plane.apply(WORKLOADS)
    plane.until(lambda: status(plane, "sts", "web").get("readyReplicas") == 3, "three pods")
    first = pods(plane, "web")
    assert (
        get_creation_time(first["web-0"])
        <= get_creation_time(first["web-1"])
        <= get_creation_time(first["web-2"])
    )
    plane.until(lambda: status(plane, "ds", "agent").get("numberReady") == 3, "a pod on each node")
    assert nodes_of(plane, "agent") == ["node-1", "node-2", "node-3"]

    order_waits_for_a_stopped_node(plane, first["web-1"])
    assert len(plane.items("pvc")) == 5

    plane.apply(NEW_NODE)
    plane.until(lambda: "late" in nodes_of(plane, "agent"), "a pod for the new node")
    assert nodes_of(plane, "agent") == ["late", "node-1", "node-2", "node-3"]


def order_waits_for_a_stopped_node(plane: Plane, pod: dict[str, Any]) -> None:
    """A pod that its silent node cannot end is neither doubled nor overtaken."""
    node, name = pod["spec"]["nodeName"], pod["metadata"]["name"]
    plane.plane.nodes[node].stop()
    plane.plane.delete(f"pod/{name}")
    plane.apply(WORKLOADS.replace("replicas: 3", "replicas: 5"))
    plane.until(lambda: is_seen(plane, "sts", "web"), "a sync with five replicas")
    plane.until(lambda: readiness(plane, node) == "Unknown", "the mark of the silent node")
    remaining = pods(plane, "web")
    assert set(remaining) == {"web-0", "web-1", "web-2"}
    assert remaining[name]["metadata"]["uid"] == pod["metadata"]["uid"]

    plane.plane.nodes[node].start()
    plane.until(lambda: status(plane, "sts", "web").get("readyReplicas") == 5, "five pods")
    final = pods(plane, "web")
    assert final[name]["metadata"]["uid"] != pod["metadata"]["uid"]
    assert (
        get_creation_time(final[name])
        <= get_creation_time(final["web-3"])
        <= get_creation_time(final["web-4"])
    )
