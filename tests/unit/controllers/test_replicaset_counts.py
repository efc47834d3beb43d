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
from kcm.reconcile.plan import Outcome, Plan
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
