"""Tests the NoSchedule taints by node condition, and eviction without NoExecute taints."""

from __future__ import annotations

from typing import Any

import pytest

from kcm.api.core_v1 import Node, Taint
from kcm.apimachinery.meta_v1 import OwnerReference
from kcm.controllers.nodelifecycle.controller import node_keys, pod_keys
from kcm.reconcile.contract import Change
from kcm.testing.builders import node, pod
from kcm.testing.views import FakeView
from tests.unit.controllers.nodelifecycle_world import Silence, build_running_pod, in_zone

# --- NoSchedule, per node


CONDITIONS = {
    "nothing": ({"Ready": "True"}, False, []),
    "not ready": ({"Ready": "False"}, False, ["not-ready"]),
    "unreachable": ({"Ready": "Unknown"}, False, ["unreachable"]),
    "memory": ({"Ready": "True", "MemoryPressure": "True"}, False, ["memory-pressure"]),
    "disk": ({"Ready": "True", "DiskPressure": "True"}, False, ["disk-pressure"]),
    "pids": ({"Ready": "True", "PIDPressure": "True"}, False, ["pid-pressure"]),
    "network": ({"Ready": "True", "NetworkUnavailable": "True"}, False, ["network-unavailable"]),
    "cordoned": ({"Ready": "True"}, True, ["unschedulable"]),
    "everything": (
        {"Ready": "False", "MemoryPressure": "True", "DiskPressure": "Unknown"},
        True,
        ["not-ready", "memory-pressure", "unschedulable"],
    ),
}


@pytest.mark.parametrize("case", CONDITIONS)
@pytest.mark.parametrize("before", CONDITIONS)
def test_conditions_become_no_schedule_taints(case: str, before: str) -> None:
    mine = Taint(key="mine", effect="NoSchedule")
    cluster = Silence(node("n1", taints=[mine]))
    for name in (before, case):
        conditions, cordoned, taints = CONDITIONS[name]
        new_node = cluster.node("n1")
        cluster.put(new_node.with_spec(new_node.spec.replace(unschedulable=cordoned)))
        cluster.report("n1", **_lower(conditions))
        cluster.sync("n1")
        assert sorted(cluster.keys("n1", "NoSchedule")) == sorted(["mine", *taints])
    changed = Change(cluster.node("n1"), cluster.node("n1"))
    assert list(node_keys(changed, cluster.view())) == []


def _lower(conditions: dict[str, str]) -> dict[str, str]:
    return {"ready" if type == "Ready" else type: word for type, word in conditions.items()}


def test_only_changes_that_need_something_are_looked_at() -> None:
    view = FakeView()
    calm, cordoned = node("n1"), node("n2", unschedulable=True)
    assert list(node_keys(Change(None, calm), view)) == []
    assert list(node_keys(Change(calm, cordoned), view)) == ["n2"]
    assert list(node_keys(Change(cordoned, None), view)) == []


def test_older_labels_follow_the_stable_ones() -> None:
    labels = {"kubernetes.io/os": "linux", "beta.kubernetes.io/os": "windows"}
    cluster = Silence(node("n1", labels={**labels, "kubernetes.io/arch": "arm64"}))
    cluster.sync("n1")
    reconciled = cluster.node("n1").labels
    assert reconciled["beta.kubernetes.io/os"] == "linux"
    assert reconciled["beta.kubernetes.io/arch"] == "arm64"


def test_a_pod_that_comes_to_a_dead_node_is_not_ready() -> None:
    unbound, bound = pod("a"), build_running_pod("a", "n1")
    cluster = Silence(node("n1", ready=None), pods=(bound,))
    assert list(pod_keys(Change(unbound, bound), cluster.view())) == ["default/a"]
    assert list(pod_keys(Change(bound, bound), cluster.view())) == []
    assert list(pod_keys(Change(None, unbound), cluster.view())) == []
    cluster.sync("default/a")
    [condition] = cluster.pod("a").status.conditions or []
    assert condition.status == "False"
    cluster.sync("default/gone")
    cluster.sync("gone")


# --- direct eviction


def directly(*nodes: Node, pods: Any = (), **options: Any) -> Silence:
    return Silence(
        *nodes, pods=pods, enable_taint_manager=False, pod_eviction_timeout=20, **options
    )


def test_without_the_taint_manager_pods_are_deleted_after_the_timeout() -> None:
    daemon = OwnerReference(
        api_version="apps/v1", kind="DaemonSet", name="d", uid="u", controller=True
    )
    pods = (
        build_running_pod("a", "n1"),
        build_running_pod("b", "n1"),
        build_running_pod("d", "n1", metadata={"owner_references": [daemon]}),
        build_running_pod("e", "n2"),
    )
    cluster = directly(node("n1"), node("n2"), pods=pods)
    cluster.run(1)
    cluster.silent = {"n1"}
    cluster.run(20)
    assert not cluster.pod("a").deleting
    cluster.run(1)
    assert [cluster.pod(name).deleting for name in "abde"] == [True, True, False, False]
    gone = cluster.pod("a").status
    assert (gone.reason, gone.message) == (
        "NodeLost",
        "Node n1 which was running pod a is unresponsive",
    )
    assert cluster.pod("d").status.reason is None
    assert cluster.keys("n1", "NoExecute") == []
    assert cluster.messages_of("DeletingAllPods") == [
        "Node n1 event: Deleting all Pods from Node n1."
    ]
    assert cluster.messages_of("NodeControllerEviction") == [
        "Marking for deletion Pod a from Node n1",
        "Marking for deletion Pod b from Node n1",
    ]


def test_direct_eviction_counts_from_when_a_node_said_not_ready() -> None:
    cluster = directly(node("n1"), node("n2"), pods=(build_running_pod("a", "n1"),))
    cluster.run(1)
    for _ in range(25):
        cluster.step(1)
        condition = cluster.condition("n1")
        since = (
            condition.last_transition_time if condition and condition.status == "False" else None
        )
        cluster.report("n1", "False")
        if since is not None:
            ready = cluster.condition("n1")
            assert ready is not None
            ready.last_transition_time = since
        cluster.beat()
        cluster.monitor()
        cluster.work_off()
        if cluster.pod("a").deleting:
            break
    assert cluster.seconds == 23.0


def test_direct_eviction_is_cancelled_when_the_node_returns() -> None:
    nodes = [node(f"n{i}") for i in range(9)]
    cluster = directly(*nodes, pods=(build_running_pod("a", "n1"), build_running_pod("b", "n2")))
    cluster.run(1)
    cluster.silent = {"n1", "n2"}
    cluster.run(22)
    assert [cluster.pod(name).deleting for name in "ab"] == [True, False]
    cluster.silent.clear()
    cluster.run(20)
    assert not cluster.pod("b").deleting


def test_a_node_costs_one_token_however_often_its_eviction_is_cut_short() -> None:
    cluster = directly(
        node("n1"), node("n2"), pods=(build_running_pod("a", "n1"), build_running_pod("b", "n1"))
    )
    cluster.run(1)
    cluster.silent = {"n1"}
    cluster.run(21)
    assert cluster.pod("a").deleting
    late = build_running_pod("late", "n1")
    cluster.world.put(late)
    cluster.run(1)
    assert cluster.pod("late").deleting


def test_zones_without_a_name_have_one() -> None:
    cluster = Silence(node("n1"), in_zone("n2", "a"))
    cluster.monitor()
    assert sorted(cluster.zones()) == ["", ":\0:a"]
