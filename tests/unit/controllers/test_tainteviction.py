"""Tests which plan taint eviction makes for a pod, its node and the remembered deadline."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

import pytest

from kcm import errors
from kcm.api.core_v1 import Node, Pod, Taint, Toleration
from kcm.apimachinery.meta_v1 import KubeObject
from kcm.controllers.tainteviction import (
    DELETIONS,
    LATENCY,
    TaintEvictionController,
    node_keys,
    pod_keys,
)
from kcm.reconcile.contract import Change
from kcm.reconcile.plan import Delete, Plan
from kcm.testing.builders import node, pod
from kcm.testing.views import NOW, FakeView
from kcm.testing.world import World

UNREACHABLE = Taint(key="node.kubernetes.io/unreachable", effect="NoExecute")
NOT_READY = Taint(key="node.kubernetes.io/not-ready", effect="NoExecute")
NO_SCHEDULE = Taint(key="node.kubernetes.io/unreachable", effect="NoSchedule")
KEY = "default/web-1"
NOTHING: Mapping[str, str] = {}


def build_toleration(seconds: int | None, taint: Taint = UNREACHABLE) -> Toleration:
    return Toleration(
        key=taint.key, operator="Exists", effect="NoExecute", toleration_seconds=seconds
    )


def on_node(*tolerations: Toleration, **fields: Any) -> Pod:
    return pod(node="n1", phase="Running", tolerations=list(tolerations), **fields)


def reconcile(*objects: KubeObject, note: Mapping[str, str] = NOTHING, now: datetime = NOW) -> Plan:
    controller = TaintEvictionController()
    return controller.reconcile(
        "n1", FakeView(*objects, controller=controller, memory=note, now=now)
    )


def build_memory(pod: Pod, seconds_ago: float) -> dict[str, str]:
    since = NOW - timedelta(seconds=seconds_ago)
    return {pod.key: f"{pod.uid} {since.isoformat()}"}


def messages_of(plan: Plan) -> list[str]:
    return [event.message for event in plan.events]


def deletes(plan: Plan) -> bool:
    return any(isinstance(write, Delete) for write in plan.writes)


def test_a_pod_that_tolerates_nothing_goes_at_once_and_says_why() -> None:
    pod, tainted = on_node(), node("n1", taints=[UNREACHABLE])
    world = World(pod, tainted)
    plan = reconcile(pod, tainted)
    outcome = world.carry_out(plan)
    gone = world.find(pod)
    assert isinstance(gone, Pod)
    assert gone.deleting
    (target,) = gone.status.conditions or []
    assert (target.type, target.status, target.reason, target.message) == (
        "DisruptionTarget",
        "True",
        "DeletionByTaintManager",
        "Taint manager: deleting due to NoExecute taint",
    )
    assert [(e.reason, e.message) for e in plan.events_after(outcome)] == [
        ("TaintManagerEviction", f"Marking for deletion Pod {KEY}")
    ]


@pytest.mark.parametrize(
    "taints", [[], [NO_SCHEDULE], [NOT_READY], [UNREACHABLE, NOT_READY], [UNREACHABLE]]
)
def test_nothing_is_deleted_once_the_taints_are_others(taints: list[Taint]) -> None:
    pod, judged = on_node(), node("n1", taints=[UNREACHABLE, NO_SCHEDULE])
    world = World(pod, node("n1", taints=taints))
    plan = reconcile(pod, judged)
    outcome = world.carry_out(plan)
    refused = taints != [UNREACHABLE]
    assert [type(failure.error) for failure in world.failures] == [errors.GuardFailed] * refused
    assert bool(plan.events_after(outcome)) is not refused


def test_the_time_begins_when_the_taint_is_seen_and_is_noted() -> None:
    pod = on_node(build_toleration(300))
    plan = reconcile(pod, node("n1", taints=[UNREACHABLE]))
    assert (plan.requeue_after, plan.state) == (300.0, build_memory(pod, 0))
    assert not plan.writes


@pytest.mark.parametrize(
    ("ago", "left"), [(0, 300.0), (100, 200.0), (299.5, 0.5), (300, None), (4000, None)]
)
def test_a_later_sync_does_not_move_the_time(ago: float, left: float | None) -> None:
    pod = on_node(build_toleration(300))
    plan = reconcile(pod, node("n1", taints=[UNREACHABLE]), note=build_memory(pod, ago))
    assert plan.requeue_after == left
    assert deletes(plan) is (left is None)


@pytest.mark.parametrize(
    ("tolerations", "left"),
    [
        ([build_toleration(300), build_toleration(60, NOT_READY)], 50.0),
        ([build_toleration(300), build_toleration(None, NOT_READY)], 290.0),
        ([build_toleration(None), build_toleration(60, NOT_READY)], 50.0),
    ],
)
def test_the_shortest_time_wins(tolerations: list[Toleration], left: float) -> None:
    pod = on_node(*tolerations)
    tainted = node("n1", taints=[UNREACHABLE, NOT_READY])
    assert reconcile(pod, tainted, note=build_memory(pod, 10)).requeue_after == left


def test_a_toleration_of_more_seconds_than_there_are_is_waited_for() -> None:
    plan = reconcile(on_node(build_toleration(2**62)), node("n1", taints=[UNREACHABLE]))
    assert plan.requeue_after is not None
    assert plan.requeue_after > 2**37


@pytest.mark.parametrize("seconds", [0, -1, -(2**40)])
def test_no_time_or_less_than_none_is_at_once(seconds: int) -> None:
    assert deletes(reconcile(on_node(build_toleration(seconds)), node("n1", taints=[UNREACHABLE])))


@pytest.mark.parametrize("taints", [[], [NO_SCHEDULE]])
def test_an_eviction_is_cancelled_when_the_taint_goes(taints: list[Taint]) -> None:
    pod = on_node(build_toleration(300))
    plan = reconcile(pod, node("n1", taints=taints), note=build_memory(pod, 10))
    assert messages_of(plan) == [f"Cancelling deletion of Pod {KEY}"]
    assert (plan.state, plan.requeue_after, plan.writes) == ({}, None, [])


def test_an_eviction_is_cancelled_when_all_that_is_left_is_tolerated_for_ever() -> None:
    pod = on_node(build_toleration(300), build_toleration(None, NOT_READY))
    plan = reconcile(pod, node("n1", taints=[NOT_READY]), note=build_memory(pod, 10))
    assert messages_of(plan) == [f"Cancelling deletion of Pod {KEY}"]
    assert plan.requeue_after is None


def test_nothing_is_told_when_nothing_was_planned() -> None:
    plan = reconcile(on_node(), node("n1"))
    assert (plan.events, plan.writes, plan.requeue_after) == ([], [], None)


def test_another_pod_of_the_same_name_has_its_own_time() -> None:
    pod = on_node(build_toleration(300))
    plan = reconcile(
        pod,
        node("n1", taints=[UNREACHABLE]),
        note=build_memory(pod.with_metadata(uid="other"), 9),
    )
    assert plan.requeue_after == 300.0


def test_a_pod_deleted_by_others_cancels() -> None:
    tainted = node("n1", taints=[UNREACHABLE])
    plan = reconcile(tainted, note=build_memory(on_node(), 9))
    assert messages_of(plan) == [f"Cancelling deletion of Pod {KEY}"]
    assert plan.events[0].about.uid == on_node().uid
    assert reconcile(tainted).events == []


def test_the_end_of_an_eviction_is_no_cancelling() -> None:
    pod, tainted = on_node(), node("n1", taints=[UNREACHABLE])
    memory = reconcile(pod, tainted).state
    assert memory is not None
    assert messages_of(reconcile(tainted, note=memory)) == []
    assert reconcile(on_node(deleting=NOW), tainted, note=memory).state == {}
    again = reconcile(pod, tainted, note=memory)  # a write that was refused
    assert deletes(again)


def test_the_pods_of_a_node_are_dealt_with_together() -> None:
    pods = [
        on_node(name="a"),
        on_node(build_toleration(100), name="b"),
        on_node(build_toleration(50), name="c"),
        on_node(build_toleration(None), name="d"),
        on_node(build_toleration(20), name="e"),
    ]
    plan = reconcile(*pods, node("n1", taints=[UNREACHABLE]), note=build_memory(pods[4], 20))
    assert [w.old.name for w in plan.writes if isinstance(w, Delete)] == ["a", "e"]
    assert (plan.requeue_after, sorted(plan.state or {})) == (
        50.0,
        ["default/a", "default/b", "default/c", "default/e"],
    )


def test_pods_on_their_way_out_and_pods_of_lost_nodes_are_left_alone() -> None:
    tainted = node("n1", taints=[UNREACHABLE])
    for objects in ([on_node(deleting=NOW), tainted], [on_node()], [pod()]):
        plan = reconcile(*objects)
        assert (plan.writes, plan.events, plan.state) == ([], [], {})


# --- which keys


def keys_of_node(old: Node | None, new: Node | None) -> list[str]:
    return list(node_keys(Change(old, new), FakeView()))


def test_a_node_whose_no_execute_taints_change_is_looked_at() -> None:
    plain, tainted = node("n1", taints=[NO_SCHEDULE]), node("n1", taints=[UNREACHABLE])
    assert keys_of_node(plain, tainted) == ["n1"]
    assert keys_of_node(tainted, plain) == ["n1"]
    assert keys_of_node(None, tainted) == ["n1"]
    assert keys_of_node(tainted, None) == ["n1"]
    assert keys_of_node(None, plain) == []
    assert keys_of_node(tainted, tainted) == []


def test_a_pod_on_a_tainted_node_touches_it_when_it_matters() -> None:
    view = FakeView(node("n1", taints=[UNREACHABLE]), node("n2"))
    before, bound, patient = pod(), on_node(), on_node(build_toleration(5))
    assert list(pod_keys(Change(before, bound), view)) == ["n1"]
    assert list(pod_keys(Change(None, bound), view)) == ["n1"]
    assert list(pod_keys(Change(bound, patient), view)) == ["n1"]
    assert list(pod_keys(Change(bound, None), view)) == ["n1"]
    assert list(pod_keys(Change(bound, bound), view)) == []
    assert list(pod_keys(Change(None, before), view)) == []
    assert list(pod_keys(Change(None, pod(node="n2")), view)) == []


def test_evictions_are_counted_and_how_late_they_came() -> None:
    pod, tainted = on_node(build_toleration(10)), node("n1", taints=[UNREACHABLE])
    plan = reconcile(pod, tainted, note=build_memory(pod, 12))
    counts = plan.counts_after(World(pod, tainted).carry_out(plan))
    assert counts == {**LATENCY.observe(2), **DELETIONS.count()}
