"""Tests that syncs bring a ReplicaSet to its desired replicas whatever pods there are."""

from __future__ import annotations

from datetime import timedelta

from hypothesis import given, settings
from hypothesis import strategies as st

from kcm.api.apps_v1 import ReplicaSet
from kcm.api.core_v1 import Pod
from kcm.apimachinery.ownership import is_controlled_by
from kcm.controllers.replicaset import ReplicaSetController
from kcm.controllers.replicaset import controller as module
from kcm.helpers.pods import is_active
from kcm.testing.builders import START, pod, replica_set
from kcm.testing.views import NOW
from kcm.testing.world import World

RS = replica_set()
OTHER = replica_set("other", labels={"app": "web"})


@st.composite
def pods(draw: st.DrawFn) -> list[Pod]:
    """Draws pods with any owner, labels, phase and age."""
    return [_pod(draw, f"p{number}") for number in range(draw(st.integers(0, 12)))]


def _pod(draw: st.DrawFn, name: str) -> Pod:
    age = timedelta(seconds=draw(st.integers(-5, 5000)))
    return pod(
        name,
        owner=draw(st.sampled_from([RS, RS, OTHER, None])),
        labels={"app": draw(st.sampled_from(["web", "web", "stray"]))},
        phase=draw(st.sampled_from(["Pending", "Running", "Unknown", "Failed", "Succeeded"])),
        ready=draw(st.sampled_from([True, False, None])),
        ready_since=NOW - age,
        node=draw(st.sampled_from(["n1", "n2", None])),
        deleting=START if draw(st.booleans()) else None,
    )


def active(world: World) -> list[Pod]:
    pods = [p for p in world.objects.values() if isinstance(p, Pod)]
    return [p for p in pods if is_active(p) and is_controlled_by(p, RS) and p.labels == RS.labels]


def sync(world: World) -> None:
    plan = ReplicaSetController().reconcile("default/web", world.view())
    world.carry_out(plan)
    assert world.failures == []


@settings(max_examples=150, deadline=None)
@given(pods(), st.integers(0, 15))
def test_one_sync_reaches_the_count_and_the_next_changes_nothing_but_the_status(
    present: list[Pod], wanted: int
) -> None:
    rs = RS.with_spec(RS.spec.replace(replicas=wanted))
    world = World(rs, OTHER, *present)
    sync(world)
    assert len(active(world)) == wanted
    before = {key: obj for key, obj in world.objects.items() if isinstance(obj, Pod)}
    sync(world)
    assert {k: obj for k, obj in world.objects.items() if isinstance(obj, Pod)} == before
    stored = world.find(rs)
    assert isinstance(stored, ReplicaSet)
    assert stored.status.replicas == wanted


@settings(max_examples=30, deadline=None)
@given(pods())
def test_pods_of_others_are_never_touched(present: list[Pod]) -> None:
    world = World(RS, OTHER, *present)
    sync(world)
    for theirs in (p for p in present if is_controlled_by(p, OTHER)):
        assert world.find(theirs) == theirs


def test_more_than_a_burst_takes_several_syncs() -> None:
    wanted = 2 * module.BURST_REPLICAS + 10
    world = World(RS.with_spec(RS.spec.replace(replicas=wanted)))
    counts = []
    for _ in range(3):
        sync(world)
        counts.append(len(active(world)))
    assert counts == [500, 1000, 1010]
