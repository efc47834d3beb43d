"""Simulated nodes as a user has them: `kcm up --nodes 3`, real processes."""

from __future__ import annotations

import json

import psutil
import pytest

from kcm.testing.waiting import until
from tests.scenarios.plane import Plane, StartPlane, start_plane
from tests.scenarios.system import Kcm, System, system

__all__ = ["start_plane", "system"]

pytestmark = pytest.mark.scenario

POD = """\
apiVersion: v1
kind: Pod
metadata: {{name: {name}, annotations: {annotations}}}
spec:
  nodeName: {node}
  tolerations: [{{operator: Exists}}]
  containers: [{{name: main, image: nginx}}]
---
"""


def apply(system: Kcm, *pods: tuple[str, str, dict[str, str]]) -> None:
    system.apply(
        "".join(
            POD.format(name=name, node=node, annotations=json.dumps(notes))
            for name, node, notes in pods
        )
    )


def phases(system: Kcm) -> dict[str, str]:
    return {pod["metadata"]["name"]: pod["status"]["phase"] for pod in system.items("pods")}


def get_waiting_reason(system: Kcm, pod: str) -> str:
    """Returns why the pod's container waits, "" if it does not."""
    (container,) = system.get("pod", pod)["status"]["containerStatuses"]
    return str(container["state"].get("waiting", {}).get("reason", ""))


def get_renew_time(system: Kcm, node: str) -> str:
    return str(system.get("lease", node, "kube-node-lease")["spec"]["renewTime"])


def is_silent(plane: Plane, node: str) -> bool:
    """Reports whether it renews nothing while node-1 renews its own lease."""
    before, others = get_renew_time(plane, node), get_renew_time(plane, "node-1")
    plane.clock.advance("10s")
    assert get_renew_time(plane, "node-1") > others
    return get_renew_time(plane, node) == before


def test_pods_run_on_simulated_nodes_and_a_stopped_node_is_silent(
    start_plane: StartPlane,
) -> None:
    plane = start_plane()
    assert sorted(n["metadata"]["name"] for n in plane.items("nodes")) == [
        "node-1",
        "node-2",
        "node-3",
    ]
    crash = {"simulation.kcm.dev/outcome": "crash"}
    apply(plane, ("a", "node-1", {}), ("b", "node-2", {}), ("c", "node-3", crash))
    plane.until(lambda: set(phases(plane).values()) == {"Running"}, "pods that run")
    plane.until(lambda: get_waiting_reason(plane, "c") == "CrashLoopBackOff", "a crash loop")
    assert "CrashLoopBackOff" in plane.kcm("get", "pods").stdout
    assert "Started container main" in plane.kcm("events").stdout

    stopped = plane.kcm("nodes", "stop", "node-2")
    assert "node-2 is stopped" in stopped.stdout, stopped.stderr
    assert is_silent(plane, "node-2")
    before = get_renew_time(plane, "node-2")
    apply(plane, ("late", "node-2", {}))
    assert is_silent(plane, "node-2")
    assert phases(plane)["late"] == "Pending"

    assert plane.kcm("nodes", "start", "node-2").returncode == 0
    plane.until(lambda: phases(plane)["late"] == "Running", "the pod that waited")
    assert get_renew_time(plane, "node-2") > before
    assert plane.kcm("delete", "pod", "a", "--no-wait").returncode == 0
    plane.until(lambda: "a" not in phases(plane), "a pod that ends gracefully")


@pytest.mark.long
def test_a_killed_simulator_goes_on_where_it_was(system: System) -> None:
    system.start("--nodes", "2")
    apply(system, ("a", "node-1", {}), ("b", "node-2", {}))
    until(lambda: set(phases(system).values()) == {"Running"}, "pods that run")
    before = {p["metadata"]["name"]: p["status"] for p in system.items("pods")}
    psutil.Process(system.child("nodes")).kill()
    apply(system, ("c", "node-1", {}))
    until(lambda: phases(system)["c"] == "Running", "a pod of the next simulator")
    after = {p["metadata"]["name"]: p["status"] for p in system.items("pods")}
    assert {name: after[name] for name in before} == before
    assert after["c"]["podIP"] not in {status["podIP"] for status in before.values()}
