"""Tests node health, taints and evictions: which conditions and taints nodes get, and when."""

from __future__ import annotations

from datetime import timedelta

import pytest

from kcm.api.core_v1 import NodeCondition, Taint
from kcm.controllers.nodelifecycle.controller import NodeLifecycleController
from kcm.reconcile.plan import Patch
from kcm.testing.builders import START, condition, lease, node
from tests.unit.controllers.nodelifecycle_world import Silence, build_running_pod, no_execute


def test_the_loops_have_upstreams_periods() -> None:
    ticks = NodeLifecycleController().ticks()
    assert [(tick.name, tick.every) for tick in ticks] == [
        ("monitorNodeStatus", 5.0),
        ("doNoExecuteTaintingPass", 1.0),
    ]


# --- who is silent


def test_a_node_that_falls_silent_is_marked_after_its_grace_and_tainted() -> None:
    cluster = Silence(
        node("n1"), node("n2"), pods=(build_running_pod("a", "n1"), build_running_pod("b", "n2"))
    )
    cluster.run(5)
    cluster.silent.add("n1")
    cluster.run(10)
    assert cluster.ready("n1") == "True"
    cluster.run(1)
    assert cluster.unknown_at == {"n1": 16.0}
    assert cluster.tainted_at == {"n1": 16.0}
    assert cluster.keys("n1", "NoSchedule") == ["unreachable"]
    assert cluster.keys("n1", "NoExecute") == ["unreachable"]
    assert [t.effect for t in cluster.node("n1").spec.taints or ()] == ["NoSchedule", "NoExecute"]
    assert cluster.messages_of("NodeNotReady") == [
        "Node n1 status is now: NodeNotReady",
        "Node is not ready",
    ]


def test_what_a_silent_kubelet_reported_becomes_unknown() -> None:
    cluster = Silence(node("n1"), node("n2"))
    cluster.report("n1", "True", MemoryPressure="False", NetworkUnavailable="False")
    cluster.run(1)
    cluster.silent.add("n1")
    cluster.run(11)
    for type in ("Ready", "MemoryPressure"):
        condition = cluster.condition("n1", type)
        assert condition is not None
        assert (condition.status, condition.reason, condition.message) == (
            "Unknown",
            "NodeStatusUnknown",
            "Kubelet stopped posting node status.",
        )
        assert condition.last_heartbeat_time == START
        assert condition.last_transition_time == START + timedelta(seconds=12)
    for type in ("DiskPressure", "PIDPressure"):
        condition = cluster.condition("n1", type)
        assert condition is not None
        assert (condition.status, condition.reason) == ("Unknown", "NodeStatusNeverUpdated")
    network = cluster.condition("n1", "NetworkUnavailable")
    assert network is not None
    assert network.status == "False"


@pytest.mark.parametrize(("age", "status"), [(59, ""), (60, ""), (61, "Unknown")])
def test_a_node_that_never_reported_has_the_startup_grace(age: int, status: str) -> None:
    born = START + timedelta(seconds=1e9 + 100 - age) - timedelta(seconds=START.timestamp())
    new = node("new", metadata={"creation_timestamp": born}, status={"conditions": None})
    cluster = Silence(new, node("n1"))
    cluster.step(100)
    cluster.monitor()
    assert cluster.ready("new") == status
    if status:
        condition = cluster.condition("new")
        assert condition is not None
        assert (condition.reason, condition.message, condition.last_heartbeat_time) == (
            "NodeStatusNeverUpdated",
            "Kubelet never posted node status.",
            born,
        )


def test_leases_alone_keep_a_node_alive() -> None:
    cluster = Silence(node("n1"))
    cluster.run(60)
    assert cluster.ready("n1") == "True"
    condition = cluster.condition("n1")
    assert condition is not None
    assert condition.last_heartbeat_time == START


def test_status_heartbeats_alone_keep_a_node_alive() -> None:
    cluster = Silence(node("n1"), node("n2"))
    cluster.silent = {"n1"}
    for _ in range(30):
        cluster.step(1)
        cluster.report("n1")
        cluster.monitor()
    assert cluster.ready("n1") == "True"


@pytest.mark.parametrize("seconds", [-3600, 3600])
def test_a_nodes_own_clock_decides_nothing(seconds: int) -> None:
    cluster = Silence(node("n1"), node("n2"))
    cluster.silent = {"n1"}
    for second in range(30):
        cluster.step(1)
        renewed = START + timedelta(seconds=seconds + second)
        new_lease = lease("n1", namespace="kube-node-lease", renewed=renewed)
        cluster.world.put(new_lease)
        cluster.monitor()
    assert cluster.ready("n1") == "True"


def test_a_lease_from_the_future_does_not_silence_a_node_later() -> None:
    cluster = Silence(node("n1"), node("n2"))
    ahead = lease("n1", namespace="kube-node-lease", renewed=START + timedelta(days=1))
    cluster.world.put(ahead)
    cluster.monitor()
    cluster.run(30)
    assert cluster.ready("n1") == "True"


def test_a_node_with_broken_times_is_looked_at_all_the_same() -> None:
    odd = NodeCondition(type="Ready", status="True")
    cluster = Silence(node("odd", status={"conditions": [odd]}), node("n1"))
    cluster.silent = {"odd"}
    cluster.run(11)
    assert cluster.ready("odd") == "True"
    cluster.run(1)
    assert cluster.ready("odd") == "Unknown"


def test_a_mark_is_left_out_when_the_kubelet_has_spoken_since() -> None:
    cluster = Silence(node("n1"), node("n2"))
    cluster.run(1)
    cluster.silent = {"n1"}
    cluster.step(20)
    plan = cluster.controller.ticks()[0].run(
        cluster.view(), cluster.state | {"last": repr(1e9 + 20)}
    )
    cluster.report("n1")
    (mark,) = (w for w in plan.writes if isinstance(w, Patch) and w.old.name == "n1")
    fresh = cluster.node("n1")
    assert mark.status
    assert mark.change(fresh) is fresh


def test_a_node_that_reports_not_ready_is_tainted_and_its_pods_are_left_to_it() -> None:
    cluster = Silence(node("n1"), node("n2"), pods=(build_running_pod("a", "n1"),))
    cluster.run(2)
    cluster.report("n1", "False")
    cluster.run(1)
    assert cluster.keys("n1", "NoExecute") == ["not-ready"]
    assert cluster.messages_of("NodeNotReady") == []
    assert cluster.pod("a").status.conditions == [condition("Ready")]


# --- known nodes


def test_nodes_come_and_go_with_an_event_each() -> None:
    cluster = Silence(node("n1"), node("n2"))
    cluster.run(2)
    cluster.world.remove(cluster.world.objects["nodes", "n2"])
    cluster.run(2)
    assert cluster.messages_of("RegisteredNode") == [
        "Node n1 event: Registered Node n1 in Controller",
        "Node n2 event: Registered Node n2 in Controller",
    ]
    assert cluster.messages_of("RemovingNode") == [
        "Node n2 event: Removing Node n2 from Controller"
    ]


def test_a_node_registered_anew_is_another_one() -> None:
    cluster = Silence(node("n1"), node("n2"))
    cluster.run(2)
    cluster.silent = {"n1"}
    cluster.run(9)
    cluster.put(node("n1", metadata={"uid": "another"}))
    cluster.run(5)
    assert cluster.ready("n1") == "True"
    assert cluster.messages_of("RemovingNode") == [
        "Node n1 event: Removing Node n1 from Controller"
    ]
    assert len(cluster.messages_of("RegisteredNode")) == 3


def test_a_new_node_loses_taints_that_its_life_disproves() -> None:
    old = Taint(key="node.alpha.kubernetes.io/notReady", effect="NoExecute")
    mine = Taint(key="mine", effect="NoExecute")
    cluster = Silence(node("n1", taints=[no_execute("unreachable"), old, mine]))
    cluster.monitor()
    assert cluster.node("n1").spec.taints == [mine]


# --- time that nobody watched


@pytest.mark.parametrize(("gap", "status"), [(2, "Unknown"), (3, "True"), (600, "True")])
def test_time_without_a_pass_does_not_count_against_nodes(gap: int, status: str) -> None:
    cluster = Silence(node("n1"), node("n2"))
    cluster.run(3)
    cluster.silent = {"n1", "n2"}
    cluster.run(9)
    cluster.step(gap)
    cluster.monitor()
    assert cluster.ready("n1") == status


def test_after_a_gap_a_silent_node_has_what_was_left_of_its_grace() -> None:
    cluster = Silence(node("n1"), node("n2"))
    cluster.run(3)
    cluster.silent = {"n1"}
    cluster.run(7)
    cluster.step(600)
    cluster.run(3)
    assert cluster.ready("n1") == "True"
    cluster.run(2)
    assert cluster.ready("n1") == "Unknown"
    assert cluster.ready("n2") == "True"


@pytest.mark.parametrize("epoch", ["0", "1000000"])
def test_a_new_epoch_counts_as_a_gap(epoch: str) -> None:
    cluster = Silence(node("n1"), node("n2"))
    cluster.run(3)
    cluster.silent = {"n1"}
    cluster.run(9)
    cluster.step(2)
    cluster.epoch = epoch
    cluster.monitor()
    assert cluster.ready("n1") == ("Unknown" if epoch == "0" else "True")


def test_a_clock_that_was_set_back_changes_nothing() -> None:
    cluster = Silence(node("n1"), node("n2"))
    cluster.run(100)
    cluster.silent = {"n1"}
    cluster.run(5)
    cluster.step(-90)
    cluster.run(4)
    assert cluster.ready("n1") == "True"
    cluster.run(3)
    assert cluster.ready("n1") == "Unknown"


def test_a_pass_that_died_is_made_good_by_the_next() -> None:
    cluster = Silence(node("n1"), node("n2"), pods=(build_running_pod("a", "n1"),))
    cluster.run(3)
    cluster.silent = {"n1"}
    cluster.run(10)
    cluster.step(1)
    cluster.beat()
    plan = cluster.monitor(dies=True)
    assert cluster.ready("n1") == "Unknown"
    assert plan.events
    # as if the pass had not come to the pods
    cluster.world.put(build_running_pod("a", "n1"))
    cluster.run(1)
    [condition] = cluster.pod("a").status.conditions or []
    assert condition.status == "False"
    assert len(cluster.messages_of("NodeNotReady")) == 2
    assert cluster.keys("n1", "NoExecute") == ["unreachable"]


# --- back again


def test_a_node_that_returns_loses_its_taints() -> None:
    cluster = Silence(node("n1"), node("n2"))
    cluster.run(3)
    cluster.silent = {"n1"}
    cluster.run(12)
    assert cluster.keys("n1", "NoExecute") == ["unreachable"]
    cluster.silent.clear()
    cluster.run(1)
    cluster.sync("n1")
    assert cluster.node("n1").spec.taints is None
    assert cluster.zones()[""].queue == {}


def test_a_node_that_returns_before_its_turn_is_never_tainted() -> None:
    cluster = Silence(*(node(f"n{i}") for i in range(9)))
    cluster.run(3)
    cluster.silent = {"n1", "n2"}
    cluster.run(12)
    assert list(cluster.zones()[""].queue) == ["n2"]
    cluster.silent.clear()
    cluster.run(30)
    assert list(cluster.tainted_at) == ["n1"]


@pytest.mark.parametrize(
    ("before", "after", "taint"),
    [("Unknown", "False", "not-ready"), ("False", "Unknown", "unreachable")],
)
def test_one_taint_takes_the_others_place_at_once(before: str, after: str, taint: str) -> None:
    cluster = Silence(*(node(f"n{i}") for i in range(5)), node_eviction_rate=0.0001)
    cluster.run(1)
    cluster.silent = {"n1"}
    cluster.report("n1", before)
    cluster.run(1)
    cluster.report("n1", after)
    cluster.run(1)
    assert cluster.keys("n1", "NoExecute") == [taint]


def test_a_taint_that_somebody_took_off_comes_back() -> None:
    cluster = Silence(*(node(f"n{i}") for i in range(5)))
    cluster.run(1)
    cluster.silent = {"n1"}
    cluster.run(12)
    cluster.put(cluster.node("n1").with_spec(cluster.node("n1").spec.replace(taints=None)))
    cluster.run(11)
    assert cluster.keys("n1", "NoExecute") == ["unreachable"]
