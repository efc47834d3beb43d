"""Tests which pods PodGC deletes, and what it remembers for its next pass."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import pytest

from kcm.api.core_v1 import Pod, Taint
from kcm.apimachinery.meta_v1 import KubeObject
from kcm.controllers.podgc import CHECK_PERIOD, PodGCController, PodGCOptions
from kcm.reconcile.plan import Delete, PassPlan, Patch
from kcm.testing.builders import START, condition, node, pod
from kcm.testing.views import NOW, FakeView
from kcm.testing.world import World

LONG_AGO = (NOW - timedelta(seconds=40)).isoformat()
JUST_NOW = (NOW - timedelta(seconds=39)).isoformat()
OUT_OF_SERVICE = Taint(key="node.kubernetes.io/out-of-service", effect="NoExecute")


def collect(
    *objects: KubeObject, threshold: int = 12500, state: Mapping[str, str] | None = None
) -> PassPlan:
    controller = PodGCController(PodGCOptions(terminated_pod_gc_threshold=threshold))
    view = FakeView(*objects, now=NOW, controller=controller)
    return controller.collect(view, state or {})


def list_deleted(plan: PassPlan) -> list[str]:
    """Returns the names of the pods that the plan deletes; each deletion must be forced and name
    the uid.
    """
    writes = [write for write in plan.writes if isinstance(write, Delete)]
    for write in writes:
        assert write.options.grace_period_seconds == 0
        assert write.options.uid == write.old.uid
    return [write.old.name for write in writes]


def list_marked(plan: PassPlan) -> list[Pod]:
    """Returns the pods whose status the plan changes, in their new state."""
    pods = []
    for write in plan.writes:
        if isinstance(write, Patch):
            assert write.status
            new = write.change(write.old)
            assert isinstance(new, Pod)
            pods.append(new)
    return pods


def build_terminated_pod(name: str, age: float = 0, **fields: Any) -> Pod:
    stamp = START - timedelta(seconds=age)
    fields = {"phase": "Succeeded", "metadata": {"creation_timestamp": stamp}} | fields
    return pod(name, **fields)


def test_it_looks_every_20_seconds() -> None:
    (tick,) = PodGCController().ticks()
    assert (tick.name, tick.every) == ("podgc", 20.0) == ("podgc", CHECK_PERIOD)


# --- terminated


@pytest.mark.parametrize(
    ("threshold", "expected"), [(0, []), (-1, []), (1, ["c", "a"]), (2, ["c"]), (3, []), (4, [])]
)
def test_terminated_pods_beyond_the_threshold_go_oldest_first(
    threshold: int, expected: list[str]
) -> None:
    pods = [
        build_terminated_pod("a", 20),
        build_terminated_pod("b", 10, phase="Failed"),
        build_terminated_pod("c", 30),
    ]
    busy = [pod("d", phase="Running"), pod("e", phase="Pending"), pod("f", phase="Unknown")]
    plan = collect(*pods, *busy, threshold=threshold)
    assert list_deleted(plan) == expected
    assert list_marked(plan) == []


def test_evicted_pods_go_first() -> None:
    evicted = build_terminated_pod("young", phase="Failed", status={"reason": "Evicted"})
    assert list_deleted(collect(build_terminated_pod("old", 99), evicted, threshold=1)) == ["young"]


def test_of_equally_old_ones_the_name_decides() -> None:
    assert list_deleted(
        collect(build_terminated_pod("b"), build_terminated_pod("a"), threshold=1)
    ) == ["a"]


# --- orphaned


def test_a_missing_node_is_put_under_quarantine() -> None:
    plan = collect(pod("a", node="gone"), pod("b", node="here"), node("here"))
    assert plan.writes == []
    assert plan.state == {"gone": NOW.isoformat()}


@pytest.mark.parametrize(("since", "expected"), [(JUST_NOW, []), (LONG_AGO, ["a"])])
def test_its_pods_go_after_40_seconds(since: str, expected: list[str]) -> None:
    plan = collect(pod("a", node="gone", phase="Running"), state={"gone": since})
    assert list_deleted(plan) == expected
    assert plan.state == ({} if expected else {"gone": since})


def test_a_node_that_came_back_is_forgotten() -> None:
    plan = collect(pod("a", node="back"), node("back"), state={"back": LONG_AGO})
    assert (plan.writes, plan.state) == ([], {})


def test_every_write_depends_on_the_node_being_absent() -> None:
    plan = collect(pod("a", node="gone", phase="Running"), state={"gone": LONG_AGO})
    assert [[str(g) for g in write.guards] for write in plan.writes] == [["absent nodes gone "]] * 2


def test_an_orphan_is_marked_failed_before_it_is_deleted() -> None:
    plan = collect(pod("a", node="gone", phase="Running"), state={"gone": LONG_AGO})
    assert [type(write) for write in plan.writes] == [Patch, Delete]
    (failed,) = list_marked(plan)
    assert failed.status.phase == "Failed"
    (disruption,) = failed.status.conditions or []
    assert (disruption.type, disruption.status) == ("DisruptionTarget", "True")
    assert disruption.reason == "DeletionByPodGC"
    assert disruption.message == "PodGC: node no longer exists"
    assert disruption.last_transition_time == NOW


def test_a_condition_that_was_there_keeps_its_time() -> None:
    status = {"conditions": [condition("Ready"), condition("DisruptionTarget", since=START)]}
    orphan = pod("a", node="gone", phase="Running", status=status)
    (failed,) = list_marked(collect(orphan, state={"gone": LONG_AGO}))
    ready, disruption = failed.status.conditions or []
    assert ready.type == "Ready"
    assert disruption.last_transition_time == START


def test_a_finished_orphan_keeps_its_phase() -> None:
    plan = collect(pod("a", node="gone", phase="Succeeded"), state={"gone": LONG_AGO})
    assert list_marked(plan) == []
    assert list_deleted(plan) == ["a"]


def test_a_pod_that_finishes_meanwhile_is_not_marked() -> None:
    plan = collect(pod("a", node="gone", phase="Running"), state={"gone": LONG_AGO})
    mark = plan.writes[0]
    assert isinstance(mark, Patch)
    finished = pod("a", node="gone", phase="Succeeded")
    assert mark.change(finished) is finished


# --- terminating


def test_a_terminating_pod_without_a_node_goes_at_once() -> None:
    plan = collect(pod("a", deleting=START), pod("b"), pod("c", deleting=START, node="n1"), node())
    assert list_deleted(plan) == ["a"]
    (failed,) = list_marked(plan)
    assert (failed.status.phase, failed.status.conditions) == ("Failed", None)


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        (node(ready=False, taints=[OUT_OF_SERVICE]), ["a"]),
        (node(ready=None, taints=[OUT_OF_SERVICE]), ["a"]),
        (node(ready=True, taints=[OUT_OF_SERVICE]), []),
        (node(ready=False), []),
    ],
)
def test_terminating_pods_go_with_a_node_that_is_out_of_service(
    where: KubeObject, expected: list[str]
) -> None:
    pods = [pod("a", deleting=START, node="n1", phase="Running"), pod("b", node="n1")]
    plan = collect(where, *pods)
    assert list_deleted(plan) == expected
    assert [p.status.phase for p in list_marked(plan)] == ["Failed"] * len(expected)


def test_each_pod_is_written_once_whatever_speaks_for_it() -> None:
    dying = pod("a", node="gone", phase="Failed", deleting=START)
    assert list_deleted(
        collect(dying, pod("b", node="gone"), threshold=0, state={"gone": LONG_AGO})
    ) == [
        "a",
        "b",
    ]
    assert list_deleted(
        collect(build_terminated_pod("t", deleting=START), build_terminated_pod("u"), threshold=1)
    ) == ["t"]


def test_pods_that_went_are_counted_by_why() -> None:
    objects = [
        build_terminated_pod("old", 10),
        build_terminated_pod("new"),
        pod("left", node="gone"),
    ]
    plan = collect(*objects, threshold=1, state={"gone": LONG_AGO})
    world = World(*objects)
    assert plan.counts_after(world.carry_out(plan)) == {
        "pod_gc_collector_force_delete_pods|default|terminated": 1,
        "pod_gc_collector_force_delete_pods|default|orphaned": 1,
    }
