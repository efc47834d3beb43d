"""Tests that the counts from the cache and counting the pods one by one lead to the same plan."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kcm.api.apps_v1 import ReplicaSet
from kcm.api.core_v1 import Pod
from kcm.apimachinery.labels import Selector
from kcm.apimachinery.meta_v1 import KubeObject
from kcm.controllers.replicaset import ReplicaSetController, ReplicaSetOptions
from kcm.controllers.replicaset.status import look_up_counts
from kcm.helpers.owners import selector_of
from kcm.reconcile.plan import Outcome, Plan, UpdateStatus
from kcm.sdk import Change
from kcm.testing.builders import START, pod, replica_set
from kcm.testing.views import FakeView

CONTROLLER = ReplicaSetController(ReplicaSetOptions())


def selector(rs: ReplicaSet) -> Selector:
    pods_of_set = selector_of(rs)
    assert pods_of_set is not None
    return pods_of_set


def look_at_each_pod(rs: ReplicaSet, *objects: KubeObject) -> Plan:
    return CONTROLLER._reconcile_pods(rs, selector(rs), FakeView(rs, *objects))


def summary(plan: Plan) -> tuple[list[tuple[str, object]], object, object]:
    """Returns a plan's writes, the status that it writes, and the delay until the next sync."""
    writes = [(type(w).__name__, getattr(w, "obj", getattr(w, "old", None))) for w in plan.writes]
    update = plan.status_after(Outcome())
    return writes, update and update.new, plan.requeue_after


PODS = st.lists(
    st.fixed_dictionaries(
        {
            "labels": st.sampled_from([{"app": "web"}, {"app": "web", "x": "y"}, {"app": "other"}]),
            "own": st.sampled_from([True, True, True, False]),
            "ready": st.booleans(),
            "phase": st.sampled_from(["Running", "Running", "Pending", "Succeeded", "Failed"]),
            "deleting": st.sampled_from([None, None, None, START]),
        }
    ),
    max_size=6,
)


def build_pods(rs: ReplicaSet, shapes: list[dict[str, Any]]) -> list[Pod]:
    return [
        pod(
            f"web-{number}",
            labels=shape["labels"],
            owner=rs if shape["own"] else None,
            ready=shape["ready"],
            phase=shape["phase"],
            deleting=shape["deleting"],
        )
        for number, shape in enumerate(shapes)
    ]


@settings(max_examples=300, deadline=None)
@given(PODS, st.integers(0, 6), st.booleans())
def test_the_plan_is_the_same_as_from_looking_at_each_pod(
    shapes: list[dict[str, Any]], replicas: int, deleting: bool
) -> None:
    metadata = {"deletion_timestamp": START, "finalizers": ["a/b"]} if deleting else {}
    rs = replica_set(replicas=replicas, metadata=metadata)
    pods = build_pods(rs, shapes)
    plan = CONTROLLER.reconcile(rs.key, FakeView(rs, *pods, controller=CONTROLLER))
    assert summary(plan) == summary(look_at_each_pod(rs, *pods))


@pytest.mark.parametrize(
    ("pods", "min_ready_seconds", "is_known"),
    [
        ([{}, {"ready": True}, {"phase": "Failed"}], 0, True),
        ([{}], 10, False),  # available with time
        ([{"labels": {"app": "other"}}], 0, False),  # to be released
        ([{"labels": {"app": "other"}, "phase": "Failed"}], 0, True),  # ended: left alone
        ([{"owner": None}], 0, False),  # to be adopted
        ([{"owner": None, "labels": {"app": "other"}}], 0, True),  # somebody else's orphan
    ],
)
def test_the_cache_knows_the_counts_unless_pods_have_to_be_looked_at(
    pods: list[dict[str, Any]], min_ready_seconds: int, is_known: bool
) -> None:
    rs = replica_set(replicas=3, min_ready_seconds=min_ready_seconds)
    objects = [
        pod(f"web-{number}", **{"owner": rs, "labels": {"app": "web"}, **shape})
        for number, shape in enumerate(pods)
    ]
    view = FakeView(rs, *objects, controller=CONTROLLER)
    assert (look_up_counts(rs, selector(rs), view) is not None) == is_known


def list_keys(old: ReplicaSet, new: ReplicaSet, *pods: Pod) -> list[str]:
    """Returns the keys that a change of a ReplicaSet touches."""
    watch, _ = CONTROLLER.watches()
    return list(watch.keys(Change(old, new), FakeView(new, *pods, controller=CONTROLLER)))


def write_status(rs: ReplicaSet, *pods: Pod) -> ReplicaSet:
    """Returns the ReplicaSet with the status that its controller writes."""
    view = FakeView(rs, *pods, controller=CONTROLLER)
    update = CONTROLLER.reconcile(rs.key, view).status_after(Outcome())
    assert isinstance(update, UpdateStatus)
    written = update.new.with_metadata(resource_version="2")
    assert isinstance(written, ReplicaSet)
    return written


@settings(max_examples=300, deadline=None)
@given(PODS, st.integers(0, 6), st.booleans())
def test_a_change_that_causes_no_sync_leaves_a_sync_nothing_to_do(
    shapes: list[dict[str, Any]], replicas: int, wrong: bool
) -> None:
    before = replica_set(replicas=replicas, metadata={"resource_version": "1"})
    pods = build_pods(before, shapes)
    status = before.status.replace(replicas=0 if wrong else len(pods), ready_replicas=None)
    after = before.with_status(status).with_metadata(resource_version="2")
    plan = CONTROLLER.reconcile(after.key, FakeView(after, *pods, controller=CONTROLLER))
    writes, status_update, requeue_after = summary(plan)
    has_work = bool(writes) or status_update is not None or requeue_after is not None
    assert bool(list_keys(before, after, *pods)) == has_work


def test_its_own_status_causes_no_sync_and_another_one_does() -> None:
    before = replica_set(replicas=1, metadata={"resource_version": "1"})
    own = pod("web-0", owner=before)
    after = write_status(before, own)
    assert list_keys(before, after, own) == []
    foreign = after.with_status(after.status.replace(replicas=7))
    assert list_keys(before, foreign, own) == [before.key]


def test_what_is_no_change_of_the_status_alone_causes_a_sync() -> None:
    before = replica_set(replicas=1, metadata={"resource_version": "1"})
    own = pod("web-0", owner=before)
    after = write_status(before, own)
    other = after.with_spec(after.spec.replace(min_ready_seconds=5))
    assert list_keys(before, other, own) == [before.key]
    assert list_keys(after, after, own) == [before.key]  # a resync
    deleting = after.with_metadata(deletion_timestamp=START, finalizers=["a/b"])
    assert list_keys(before, deleting, own) == [before.key]
    watch, _ = CONTROLLER.watches()
    for change in (Change(None, after), Change(after, None)):
        assert list(watch.keys(change, FakeView(after, own))) == [before.key]
