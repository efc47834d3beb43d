"""Simulated nodes as a user has them: `kcm up --nodes 3`, real processes."""

from __future__ import annotations

import json

import psutil
import pytest

from kcm.testing.waiting import until
from tests.scenarios.system import System, system

__all__ = ["system"]

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


def apply(system: System, *pods: tuple[str, str, dict[str, str]]) -> None:
    system.apply(
        "".join(
            POD.format(name=name, node=node, annotations=json.dumps(notes))
            for name, node, notes in pods
        )
    )


def phases(system: System) -> dict[str, str]:
    return {pod["metadata"]["name"]: pod["status"]["phase"] for pod in system.items("pods")}


def get_renew_time(system: System, node: str) -> str:
    return str(system.get("lease", node, "kube-node-lease")["spec"]["renewTime"])


def is_silent(system: System, node: str) -> bool:
    """Whether it renews nothing while node-1 renews its own lease."""
    before, others = get_renew_time(system, node), get_renew_time(system, "node-1")
    until(lambda: get_renew_time(system, "node-1") != others, "a renewal of node-1")
    return get_renew_time(system, node) == before


def test_pods_run_on_simulated_nodes_and_a_stopped_node_is_silent(system: System) -> None:
    system.start("--nodes", "3", "--demo")
    assert sorted(n["metadata"]["name"] for n in system.items("nodes")) == [
        "node-1",
        "node-2",
        "node-3",
    ]
    crash = {"simulation.kcm.dev/outcome": "crash"}
    apply(system, ("a", "node-1", {}), ("b", "node-2", {}), ("c", "node-3", crash))
    until(lambda: set(phases(system).values()) == {"Running"}, "pods that run")
    until(lambda: "CrashLoopBackOff" in system.kcm("get", "pods").stdout, "a crash loop")
    until(lambda: "Started container main" in system.kcm("events").stdout, "its events")

    stopped = system.kcm("nodes", "stop", "node-2")
    assert "node-2 is stopped" in stopped.stdout, stopped.stderr
    until(lambda: is_silent(system, "node-2"), "the silence")
    before = get_renew_time(system, "node-2")
    apply(system, ("late", "node-2", {}))
    assert is_silent(system, "node-2")
    assert phases(system)["late"] == "Pending"

    assert system.kcm("nodes", "start", "node-2").returncode == 0
    until(lambda: phases(system)["late"] == "Running", "the pod that waited")
    assert get_renew_time(system, "node-2") > before
    assert system.kcm("delete", "pod", "a").returncode == 0
    until(lambda: "a" not in phases(system), "a pod that ends gracefully")


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
