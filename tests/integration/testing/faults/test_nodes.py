"""Nodes that stop, are cut off or are full, and what the control plane makes of it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from kcm import errors
from kcm.testing import ControlPlane
from tests.integration.testing.objects import deployment

SHORT = ["--node-monitor-grace-period=3s", "--node-monitor-period=1s"]
UNREACHABLE = "node.kubernetes.io/unreachable"
WEB = deployment("web")
WEB["spec"]["template"]["spec"]["tolerations"] = [
    {"key": UNREACHABLE, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 1}
]


@pytest.fixture(scope="module")
def plane() -> Iterator[ControlPlane]:
    with ControlPlane(nodes=3, flags=SHORT) as started:
        yield started


@pytest.fixture
def cp(plane: ControlPlane) -> Iterator[ControlPlane]:
    yield plane
    plane.nodes.heal()
    plane.eventually(
        lambda: all(is_usual(plane, node.name) for node in plane.nodes), what="nodes as usual"
    )


def taints(cp: ControlPlane, node: str) -> set[str]:
    return {taint["key"] for taint in cp.get(f"node/{node}")["spec"].get("taints", ())}


def is_usual(cp: ControlPlane, node: str) -> bool:
    return cp.nodes[node].ready and not taints(cp, node)


def places(cp: ControlPlane) -> dict[str, str]:
    """Returns the nodes of the pods that are not being deleted."""
    return {
        pod["metadata"]["name"]: pod["spec"].get("nodeName", "")
        for pod in cp.list("pods", selector="app=web")
        if "deletionTimestamp" not in pod["metadata"]
    }


def test_pods_of_a_stopped_node_are_evicted_and_replaced(cp: ControlPlane) -> None:
    cp.apply(WEB)
    cp.wait_for("deployment/web", condition="Available")
    lost = places(cp)
    name = min(lost.values())
    node = cp.nodes[name]
    node.stop()
    assert repr(node) == f"<Node {name}: stopped>"
    cp.wait_for(f"node/{name}", condition="Ready", status="Unknown")
    cp.eventually(lambda: UNREACHABLE in taints(cp, name))

    def is_replaced() -> bool:
        now = places(cp)
        return len(now) == 2 and name not in now.values()

    cp.eventually(is_replaced)
    # Nobody can say that the pods have ended, as long as their kubelet is gone.
    gone = {pod for pod, where in lost.items() if where == name}
    left = {pod["metadata"]["name"] for pod in cp.list("pods", selector="app=web")}
    assert gone <= left
    node.start()
    cp.eventually(lambda: is_usual(cp, name))
    cp.eventually(lambda: len(cp.list("pods", selector="app=web")) == 2)
    assert node.states == set()


def test_a_node_that_is_cut_off_comes_back(cp: ControlPlane) -> None:
    cp.nodes["node-2"].partition()
    assert cp.nodes["node-2"].states == {"partitioned"}
    cp.eventually(lambda: not cp.nodes["node-2"].ready)
    cp.nodes["node-2"].heal()
    cp.eventually(lambda: is_usual(cp, "node-2"))


@pytest.mark.parametrize(
    ("what", "condition", "taint"),
    [
        ("full", "DiskPressure", "disk-pressure"),
        ("memory_pressure", "MemoryPressure", "memory-pressure"),
        ("pid_pressure", "PIDPressure", "pid-pressure"),
    ],
)
def test_pressure_is_a_condition_and_a_taint(
    cp: ControlPlane, what: str, condition: str, taint: str
) -> None:
    node = cp.nodes["node-3"]
    getattr(node, what)()
    cp.wait_for("node/node-3", condition=condition)
    cp.eventually(lambda: f"node.kubernetes.io/{taint}" in taints(cp, "node-3"))
    node.heal()
    cp.wait_for("node/node-3", condition=condition, status="False")
    cp.eventually(lambda: is_usual(cp, "node-3"))


def test_states_of_a_node_add_up(cp: ControlPlane) -> None:
    node = cp.nodes["node-1"]
    node.full()
    node.not_ready()
    node.stop()
    assert node.states == {"disk-pressure", "not-ready", "stopped"}
    assert repr(cp.nodes).startswith("<Nodes [<Node node-1: disk-pressure, not-ready, stopped>, ")
    cp.nodes.heal()
    assert node.states == set()
    cp.wait_for("node/node-1", condition="Ready")


def test_a_node_whose_object_was_deleted_starts_again(cp: ControlPlane) -> None:
    cp.delete("node/node-2")
    assert not cp.nodes["node-2"].ready
    cp.nodes["node-2"].start()
    cp.eventually(lambda: is_usual(cp, "node-2"))


def test_a_wrong_name_is_told_the_right_ones(cp: ControlPlane) -> None:
    assert [node.name for node in cp.nodes] == ["node-1", "node-2", "node-3"]
    assert len(cp.nodes) == 3
    with pytest.raises(errors.NotFound, match="there are node-1, node-2, node-3"):
        _ = cp.nodes["node-4"]


def test_a_control_plane_without_nodes_says_so() -> None:
    empty: Any = ControlPlane(nodes=0).nodes
    with pytest.raises(errors.NotFound, match="start with ControlPlane\\(nodes=1\\)"):
        _ = empty["node-1"]
